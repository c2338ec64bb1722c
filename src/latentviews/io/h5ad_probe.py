"""Run as ``python h5ad_probe.py FILE``: touches all of the structure of an HDF5 file, and none of its numbers.

In some damaged files the HDF5 library goes round in circles or crashes; `h5ad` lets that happen to this process.
"""

import sys
from contextlib import suppress
from typing import Any

import h5py

SECONDS = 3  # of processor time, which a disk or a network that is slow does not use up


def look_at(name: str, node: Any) -> None:
    """The attributes of a node; names of variables, which lie in heaps; and where the chunks of a dataset are."""
    dict(node.attrs)
    if isinstance(node, h5py.Dataset):
        if node.chunks is not None:
            node.id.get_num_chunks()
        if name.startswith("var/"):
            node[:]


def limit_time() -> None:
    """End this process by a signal where it works for long."""
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


if __name__ == "__main__":
    limit_time()
    try:
        with h5py.File(sys.argv[1]) as file:
            file.visititems(look_at)
    except Exception as error:  # the reader will tell
        sys.exit(str(error))
