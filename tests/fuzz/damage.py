"""One damaged file, read: what a full disk, a broken copy or mischief leaves of a file of every format.

Reading must not write, neither beside the file nor above its folder, and must not take the memory that a damaged header
may ask for.
"""

import io
import resource
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import catalogue
from files import VALUES, write_fcs, write_h5ad
from latentviews import load
from latentviews.io import open_table, read_table

from .verdicts import Judge

Rng = np.random.Generator
MODELS = Path(__file__).parents[1] / "io" / "format2"
SECONDS = 5  # of processor time that any of these small files may take
PIECEWISE = 0.2  # of the tables are read a piece at a time
MEGABYTES = 256  # of memory, above what the process has held before; libraries that are imported meanwhile are in it

WRITERS: dict[str, Callable[[Path], Any]] = {
    **catalogue.WRITERS,
    "cells.npy": lambda path: np.save(path, VALUES),
    "cells.fcs": write_fcs,
    "many_csr.h5ad": lambda path: write_h5ad(path, np.tile(VALUES, (134, 1))[:400], kind="csr"),
    "many_csc.h5ad": lambda path: write_h5ad(path, np.tile(VALUES, (134, 1))[:400], kind="csc"),
}


def families() -> dict[str, list[Path]]:
    """The kinds of files: every format that can be read, and saved models, by bytes and by what is in their zip."""
    models = sorted(MODELS.glob("*.latentviews"))
    return {**{name: [] for name in WRITERS}, "model": models, "model-inside": models}


def run_case(family: str, numbers: list[int]) -> tuple[str, Judge]:
    """A file in words, and what came of reading it."""
    rng, judge = np.random.default_rng(numbers), Judge(SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / "inner"
        inner.mkdir()
        if family in WRITERS:
            path = inner / family
            WRITERS[family](path)
            words = _damaged_folder(rng, path) if path.is_dir() else damaged_file(rng, path)
            piecewise = rng.random() < PIECEWISE
            with _watched(judge, Path(folder)):
                if piecewise:
                    judge.call("read_table: open_table", lambda: sum(len(piece) for piece in open_table(path)))
                table = None if piecewise else judge.call("read_table", read_table, path)
            if table is not None:
                _judge_table(judge, table)
            return f"{family}: {words}", judge
        options = families()[family]
        source = options[int(rng.integers(len(options)))]
        path = inner / source.name
        shutil.copyfile(source, path)
        words = _damaged_entry(rng, path) if family == "model-inside" else damaged_file(rng, path)
        with _watched(judge, Path(folder)):
            judge.call("load", load, path)
    return f"{source.name}: {words}", judge


@contextmanager
def _watched(judge: Judge, folder: Path) -> Iterator[None]:
    """Files that appear or vanish meanwhile, and memory that is taken, are faults."""
    there, held = set(folder.rglob("*")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    if changed := there ^ set(folder.rglob("*")):
        judge.faults.append(f"reading wrote or removed {sorted(str(path.relative_to(folder)) for path in changed)}")
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) / 1024
    if taken > MEGABYTES:
        judge.faults.append(f"reading took {taken:.0f} MB")


def _judge_table(judge: Judge, table: Any) -> None:
    """A table that was read after all has two axes, rows, and no infinity; damage inside numbers cannot be seen."""
    values = table.values
    if values.ndim != 2 or not len(values) or values.shape[1] != len(table.columns):
        judge.faults.append(f"a table of shape {values.shape} with {len(table.columns)} names")
    if np.isinf(values).any():
        judge.faults.append("inf in the table")
    if values.shape[0] > 10_000:
        judge.faults.append(f"{values.shape[0]:,} rows out of a file of a few")


# ----------------------------------------------------------------------------------------------------------- damage


def _flipped(rng: Rng, data: bytearray) -> str:
    for place in rng.integers(0, len(data), size=rng.integers(1, 9)):
        data[place] ^= 1 << int(rng.integers(8))
    return "bits flipped"


def _overwritten(rng: Rng, data: bytearray) -> str:
    for place in rng.integers(0, len(data), size=rng.integers(1, 9)):
        data[place] = int(rng.integers(256))
    return "bytes overwritten"


def _filled(rng: Rng, data: bytearray) -> str:
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    value = int(rng.choice([0, 255, 32, 57]))
    data[start : start + size] = bytes([value]) * len(data[start : start + size])
    return f"{size} bytes of {value} at {start}"


def _cut(rng: Rng, data: bytearray) -> str:
    del data[int(rng.integers(len(data))) :]
    return f"cut to {len(data)} bytes"


def _removed(rng: Rng, data: bytearray) -> str:
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    del data[start : start + size]
    return f"{size} bytes removed at {start}"


def _repeated(rng: Rng, data: bytearray) -> str:
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    data[start:start] = data[start : start + size]
    return f"{size} bytes twice at {start}"


def _extended(rng: Rng, data: bytearray) -> str:
    data.extend(rng.bytes(int(rng.integers(1, 200))))
    return "more at its end"


DAMAGES = (_flipped, _flipped, _overwritten, _filled, _cut, _removed, _repeated, _extended)


def _damaged(rng: Rng, data: bytes) -> tuple[bytes, str]:
    """Bytes after one or two mishaps, and the mishaps in words."""
    found = bytearray(data)
    damages = [DAMAGES[int(i)] for i in rng.integers(len(DAMAGES), size=rng.integers(1, 3))]
    words = [damage(rng, found) for damage in damages if found]
    return bytes(found), ", ".join(words)


def damaged_file(rng: Rng, path: Path) -> str:
    data, words = _damaged(rng, path.read_bytes())
    path.write_bytes(data)
    return words


def _damaged_folder(rng: Rng, path: Path) -> str:
    """Damage of one file in a folder, which may also vanish."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    file = files[int(rng.integers(len(files)))]
    name = file.relative_to(path).as_posix()
    if rng.random() < 0.3:
        file.unlink()
        return f"without {name}"
    return f"{name}: {damaged_file(rng, file)}"


def _damaged_entry(rng: Rng, path: Path) -> str:
    """A zip whose checksums hold, with damage in one of its entries."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = "model.json" if rng.random() < 0.5 else str(rng.choice(list(entries)))
    if rng.random() < 0.1:
        entries["../outside"], words = entries.pop(name), "renamed to ../outside"
    else:
        entries[name], words = _damaged(rng, entries[name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    path.write_bytes(buffer.getvalue())
    return f"{name}: {words}"
