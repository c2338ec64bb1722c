"""Run as ``python h5ad_probe.py FILE``: touches all of the structure of an HDF5 file, and none of its numbers.

In some damaged files the HDF5 library goes round in circles or crashes; `h5ad` lets that happen to this process.
"""

import sys
from contextlib import suppress
from typing import Any

SECONDS = 3  # of processor time, which a disk or a network that is slow does not use up
DAMAGED = 3  # the exit status where a part that the reader needs has attributes that cannot be read


def look_at(name: str, node: Any) -> None:
    """The attributes of a node; names of variables, which lie in heaps; and where the chunks of a dataset are."""
    dict(node.attrs)
    if hasattr(node, "chunks"):  # a dataset
        if node.chunks is not None:
            node.id.get_num_chunks()
        if name.startswith("var/"):
            node[:]


def look_at_parts(file: Any) -> None:
    """What the reader needs: attributes that are wrong to one call of the library may crash another."""
    for part in [part for part in ("X", "obs", "var") if part in file]:
        try:
            look_at(part, file[part])
        except Exception as error:
            sys.stderr.write(f"{part}: {error}")
            sys.exit(DAMAGED)


def limit_time() -> None:
    """End this process by a signal where it works for long."""
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


if __name__ == "__main__":
    import h5py  # here, where `h5ad` does not need it for the number that it takes from this file

    limit_time()
    try:
        with h5py.File(sys.argv[1]) as file:
            look_at_parts(file)
            file.visititems(look_at)
    except Exception as error:  # the reader will tell
        sys.exit(str(error))
