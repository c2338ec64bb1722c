"""Rows that take their time, in a file that worker processes can import."""

import os
import time

import dask.array as da


class Slow:
    """A step on the way to every chunk, which takes its time and leaves a note of who took it.

    Once there are ``limit`` notes, whoever leaves one waits until `go_on`.
    """

    def __init__(self, folder, limit=None):
        self.folder, self.limit = folder, limit

    def __call__(self, rows):
        with open(self.folder / str(os.getpid()), "a") as notes:
            notes.write(".")
        time.sleep(0.02)
        while self.limit and sum(self.notes().values()) >= self.limit and not (self.folder / "go on").exists():
            time.sleep(0.01)
        return rows

    def go_on(self):
        """Let chunks that wait, and all others, pass."""
        (self.folder / "go on").touch()

    def notes(self):
        """How many chunks every process has read."""
        return {int(path.name): len(path.read_text()) for path in self.folder.iterdir() if path.name.isdigit()}

    def rows(self, table, n_chunks):
        """The rows of a table in chunks that take this step."""
        return da.from_array(table, chunks=(len(table) // n_chunks, 3)).map_blocks(self, dtype=float)
