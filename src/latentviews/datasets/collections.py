"""Loaders of public collections."""

import csv
import gzip
import hashlib
import json
import os
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latentviews._files import as_path
from latentviews._numbers import brief


class SeriesFile(NamedTuple):
    """Which columns of a file make a series, and which say where sequences begin and what happens.

    Attributes
    ----------
    path : str
        The file, inside the folder of the collection.
    columns : tuple of str
        The series.
    sequence : str or None
        The column whose value changes where a sequence begins; None where all rows are one.
    label : str or None
        The column that says what happens at every row.

    Examples
    --------
    >>> from latentviews.datasets import SeriesFile
    >>> SeriesFile("walks.csv", ("x", "y"), sequence="walk").columns
    ('x', 'y')
    """

    path: str
    columns: tuple[str, ...]
    sequence: str | None = None
    label: str | None = None


ACCELERATION = ("acc_x", "acc_y", "acc_z")
SERIES = {
    "basic_motions": SeriesFile("basic_motions.csv.gz", (*ACCELERATION, "gyr_x", "gyr_y", "gyr_z"), "series", "label"),
    "chest_accel": SeriesFile("chest_accel_p13.csv.gz", ACCELERATION, None, "label"),
    "daphnet": SeriesFile(
        "daphnet_s06r02.csv.gz",
        tuple(
            f"{place}_{way}" for place in ("ankle", "leg", "trunk") for way in ("horiz_fwd", "vert", "horiz_lateral")
        ),
    ),
    "wall_robot": SeriesFile("wall_robot_4.csv.gz", ("front", "left", "right", "back"), None, "label"),
    "slot_car": SeriesFile("slotcar_vicon_run1.csv.gz", ("x", "y", "z", "qx", "qy", "qz", "qw")),
    "geyser": SeriesFile("geyser_mass.csv.gz", ("waiting", "duration")),
}


class SeriesData(NamedTuple):
    r"""Sequences one under the other, from a file.

    Attributes
    ----------
    X : array of shape (n_samples, n_columns)
    lengths : array of int
        How long every sequence is.
    labels : array of shape (n_samples,) or None
        What happens at every row, where it is known.
    columns : tuple of str

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.datasets import SeriesFile, read_series
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "walks.csv"
    >>> _ = path.write_text("walk,x\na,1\na,2\nb,5\n")
    >>> read_series(path, SeriesFile(path.name, ("x",), sequence="walk")).lengths
    array([2, 1])
    """

    X: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray | None
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        return brief(self)


def load_series(name: str, folder: Any = None) -> SeriesData:
    r"""One of six recorded series.

    Parameters
    ----------
    name : {"basic_motions", "chest_accel", "daphnet", "wall_robot", "slot_car", "geyser"}
        A smart watch in 80 short runs of four activities; a chest accelerometer through seven activities; nine
        accelerometer channels of a walking patient; a robot's four ranges along a wall, with its steering; the pose of
        a slot car; waiting times and durations of a geyser's eruptions.
    folder : path or None
        Where the collections are, ``series`` among them; by default the environment variable LATENTVIEWS_DATA says.

    Returns
    -------
    SeriesData

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> from latentviews.datasets import load_series
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "series").mkdir()
    >>> _ = (folder / "series/geyser_mass.csv.gz").write_bytes(gzip.compress(b"waiting,duration\n80,4.0\n71,2.1\n"))
    >>> load_series("geyser", folder).X
    array([[80. ,  4. ],
           [71. ,  2.1]])
    """
    if not isinstance(name, str) or name not in SERIES:
        raise ValueError(f"name must be one of {sorted(SERIES)}; got {name!r}.")
    folder = folder if folder is not None else os.environ.get("LATENTVIEWS_DATA")
    if folder is None:
        raise FileNotFoundError("Say where the collections are: pass `folder`, or set LATENTVIEWS_DATA.")
    path = as_path(folder, "folder", "a directory") / "series" / SERIES[name].path
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}; `folder` is where the collections are, this file among them.")
    return read_series(path, SERIES[name])


def read_series(path: str | Path, layout: SeriesFile) -> SeriesData:
    r"""Sequences from a CSV file with a header, compressed by gzip or not; blank cells are missing values.

    Parameters
    ----------
    path : str or Path
    layout : SeriesFile
        How the file is laid out.

    Returns
    -------
    SeriesData

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.datasets import SeriesFile, read_series
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "walks.csv"
    >>> _ = path.write_text("walk,x,what\na,1,stand\na,,run\nb,5,run\n")
    >>> series = read_series(path, SeriesFile(path.name, ("x",), sequence="walk", label="what"))
    >>> series.X[:, 0], series.lengths.tolist(), series.labels.tolist()
    (array([ 1., nan,  5.]), [2, 1], ['stand', 'run', 'run'])
    """
    path = as_path(path)
    rows = _records(path)
    if not rows:
        raise ValueError(f"{path.name} holds no rows.")
    wanted = (*layout.columns, *filter(None, (layout.sequence, layout.label)))
    absent = [column for column in wanted if column not in rows[0]]
    if absent:
        raise ValueError(f"{path.name} lacks the columns {absent}; it has {list(rows[0])}.")
    X = np.array([[_value(path, row, column) for column in layout.columns] for row in rows])
    lengths = np.array([len(X)])
    if layout.sequence is not None:
        names = np.array([row[layout.sequence] for row in rows])
        begins = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
        lengths = np.diff(np.append(begins, len(X)))
    labels = None if layout.label is None else np.array([row[layout.label] for row in rows])
    return SeriesData(X, lengths, labels, layout.columns)


def _records(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by the names of its header."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", newline="") as file:
            return list(csv.DictReader(file))
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error, csv.Error) as error:
        raise ValueError(f"{path.name} is no CSV file, or damaged ({error}).") from error


def _value(path: Path, row: dict[str, str], column: str) -> float:
    """A number of a row; NaN where the cell is blank."""
    try:
        return float(row[column] or "nan")
    except ValueError as error:
        raise ValueError(f"{path.name} holds {row[column]!r:.60} in column {column!r}, which is no number.") from error


class Cytometry(NamedTuple):
    """A sample of cells with the populations that an expert gated.

    Attributes
    ----------
    X : array of shape (n_cells, n_markers)
    y : array of shape (n_cells,)
        The population of every cell; 0 where it was not gated.
    markers : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.datasets import Cytometry
    >>> cells = Cytometry(np.array([[2.0], [7.0], [8.0]]), np.array([0, 1, 1]), ["CD3"])
    >>> cells.X[cells.y > 0].ravel()  # those that were gated
    array([7., 8.])
    """

    X: np.ndarray
    y: np.ndarray
    markers: list[str]


FLOWCAP = ("dlbcl", "gvhd", "hsct")


def flowcap_samples(collection: str) -> list[str]:
    """The names of the samples of a FlowCAP-I collection ("dlbcl", "gvhd", "hsct") that `load_flowcap` knows.

    Parameters
    ----------
    collection : str

    Returns
    -------
    list[str]

    Examples
    --------
    >>> from latentviews.datasets import flowcap_samples
    >>> flowcap_samples("gvhd")[:3]
    ['gvhd_001', 'gvhd_003', 'gvhd_004']
    """
    if not isinstance(collection, str) or collection not in FLOWCAP:
        raise ValueError(f"collection must be one of {', '.join(FLOWCAP)}; got {collection!r}.")
    return [name for name in _flowcap_hashes() if name.startswith(f"{collection}_")]


def load_flowcap(sample: str, folder: Any = None) -> Cytometry:
    """A sample of the FlowCAP-I challenge (Aghaeepour et al. 2013), such as "dlbcl_001".

    The collections are DLBCL (lymphoma, three markers; "dlbcl_001_5d" has forward and side scatter too), GvHD (six
    channels) and HSCT (four). The data are public: FlowRepository FR-FCM-ZZYY, and as CSV
    github.com/VCCRI/FlowGrid_compare (DLBCL, HSCT) and github.com/KlugerLab/deepcytof (GvHD). They are not downloaded:
    a gzipped CSV a sample, the markers and then ``label``, is expected at ``flowcap_dlbcl/dlbcl_001.csv.gz`` and so on.

    Parameters
    ----------
    sample : str
        One of the names that `flowcap_samples` lists.
    folder : path or None
        Where the collections are; by default the environment variable LATENTVIEWS_DATA says.

    Returns
    -------
    Cytometry

    Examples
    --------
    >>> import tempfile
    >>> from latentviews.datasets import load_flowcap
    >>> X, y, markers = load_flowcap("dlbcl_001")  # doctest: +SKIP
    >>> load_flowcap("dlbcl_001", tempfile.mkdtemp())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no ...dlbcl_001.csv.gz; see the help of load_flowcap for where the data are to be had.
    """
    hashes = _flowcap_hashes()
    if not isinstance(sample, str) or sample not in hashes:
        raise ValueError(f"sample must be one of {', '.join(hashes)}; got {sample!r}.")
    folder = folder if folder is not None else os.environ.get("LATENTVIEWS_DATA")
    if folder is None:
        raise FileNotFoundError("Say where the collections are: pass `folder`, or set LATENTVIEWS_DATA.")
    path = as_path(folder, "folder", "a directory") / f"flowcap_{sample.split('_')[0]}" / f"{sample}.csv.gz"
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}; see the help of load_flowcap for where the data are to be had.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != hashes[sample]:
        raise ValueError(f"{path} is not the file that was published: its SHA-256 differs.")
    header, *lines = gzip.decompress(content).decode().splitlines()
    table = np.array([line.split(",") for line in lines], dtype=float)
    return Cytometry(table[:, :-1], table[:, -1].astype(int), header.split(",")[:-1])


def _flowcap_hashes() -> dict[str, str]:
    return json.loads(resources.files("latentviews.datasets").joinpath("flowcap.json").read_text())
