"""Small files of every format."""

import gzip

import h5py
import numpy as np
import zarr
from flowio import create_fcs
from scipy import sparse

VALUES = np.array([[1.5, -2.0, 3e5], [0.25, 1e-3, -4.0], [7.0, 8.0, 9.0]])


NAMES = ["CD3", "CD5", "CD19"]


def write_csv(path, delimiter=",", names=NAMES, values=VALUES):
    lines = [delimiter.join(names)] if names else []
    path.write_text("\n".join(lines + [delimiter.join(map(repr, row)) for row in values.tolist()]) + "\n")


def write_gzip(path):
    write_csv(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def write_fcs(path, values=VALUES, detectors=("FL1-A", "FL2-A", "FL3-A"), markers=NAMES, **metadata):
    with open(path, "wb") as file:
        create_fcs(file, np.ravel(values).tolist(), list(detectors), list(markers), metadata)


def write_h5ad(path, values=VALUES, kind="dense", names=NAMES):
    """AnnData's layout, versions 0.1.0 (matrices) and 0.2.0 (frames and arrays)."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        if kind == "dense":
            file["X"] = values
        else:
            stored = sparse.csr_array(values) if kind == "csr" else sparse.csc_array(values)
            group = file.create_group("X")
            group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": values.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(stored, part)
        for frame, index in (("obs", [f"cell{i}" for i in range(len(values))]), ("var", names)):
            group = file.create_group(frame)
            group.attrs.update({"_index": "_index", "encoding-type": "dataframe", "encoding-version": "0.2.0"})
            group.attrs["column-order"] = np.array([], dtype=text)
            group.create_dataset("_index", data=index, dtype=text)


def write_zarr(path):
    array = zarr.create_array(path, shape=VALUES.shape, chunks=(2, 3), dtype="f8")
    array[:] = VALUES
    array.attrs["columns"] = NAMES
