"""FCS 2.0, 3.0 and 3.1: what flow cytometers write."""

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from latentviews.io.source import InputError, Source, require

SCATTER = re.compile(r"(fsc?|ssc?|forward|side)([-_. ]|$)", re.IGNORECASE)
TIME = re.compile(r"time|event[-_ #]*(number|length|count)?$", re.IGNORECASE)


def open_fcs(path: Path, *, compensate: bool = True) -> Source:
    """Channels by marker ($PnS, else $PnN) on their linear scale, compensated by the file's own spillover."""
    try:
        return _source(path, _parse(path), compensate)
    except InputError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in the parser, or say what cannot be
        reason = _header_fault(path) or str(error) or type(error).__name__
        raise InputError(f"{path} is not a whole FCS file; it may be cut short ({reason}).") from error


def _header_fault(path: Path) -> str | None:
    """What is wrong with the header, whose bytes 10 to 57 are the places of text, data and analysis."""
    with open(path, "rb") as file:
        header = file.read(58)
    fields = [header[start : start + 8].strip() for start in range(10, 58, 8)]
    wrong = next((field for field in fields if field and not field.lstrip(b"-").isdigit()), None)
    if wrong is None:
        return None
    shown = wrong.decode("latin-1")
    return f"its header has {shown!r} where a number says at which byte a part of the file begins or ends"


def _source(path: Path, flow: Any, compensate: bool) -> Source:
    """The channels of a file that was parsed."""
    names = _names(flow)
    with np.errstate(over="ignore", invalid="ignore"):
        values = flow.as_array(preprocess=True)  # gain, logarithmic amplification, time step
    if len(values) != flow.event_count:
        raise InputError(f"{path} says that it holds {flow.event_count:,} events, but {len(values):,} are in it.")
    if not len(values):
        raise InputError(f"{path} holds no events.")
    matrix = _spillover(path, flow) if compensate else None
    if matrix is not None:
        channels, spillover = matrix
        values[:, channels] = np.linalg.solve(spillover.T, values[:, channels].T).T  # observed = true @ spillover
    detectors = flow.pnn_labels
    dyes = [j for j, name in enumerate(detectors) if not SCATTER.match(name) and not TIME.match(name)]
    return Source(
        "fcs",
        names,
        lambda columns: values[:, columns],
        aliases=dict(zip(detectors, names, strict=True)),
        usual=[j for j, name in enumerate(detectors) if not TIME.match(name)],
        tops={names[j]: _top(path, flow, j) for j in dyes},
        compensated=matrix is not None,
    )


def _parse(path: Path) -> Any:
    """The file as flowio sees it."""
    flowio = require("flowio", "Reading FCS files")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # offsets one byte off are common, and rows are counted below
            flow = flowio.FlowData(path, ignore_offset_error=True, ignore_offset_discrepancy=True)
    except flowio.exceptions.MultipleDataSetsError as error:
        raise InputError(f"{path} holds several data sets; split it into files of one each.") from error
    if flow.data_type.upper() in ("F", "D"):
        for channel in flow.channels.values():  # floating-point data are linear, whatever $PnE says (FCS 3.1, 3.2.20)
            channel["pne"] = (0.0, 0.0)
    return flow


def _names(flow: Any) -> list[str]:
    """$PnS where it is given and names one channel alone, else $PnN."""
    markers = [marker.strip() for marker in flow.pns_labels]
    return [
        marker if marker and markers.count(marker) == 1 else detector
        for marker, detector in zip(markers, flow.pnn_labels, strict=True)
    ]


def _top(path: Path, flow: Any, j: int) -> float:
    """The upper end of a channel's scale."""
    channel = flow.channels[j + 1]
    decades, first = channel["pne"]
    top = float(first * 10**decades if decades > 0 else channel["pnr"] / (channel["png"] or 1.0))
    if not math.isfinite(top):
        raise InputError(f"{path} is damaged: the scale of {flow.pnn_labels[j]!r} ends at {top}. Export it again.")
    return top


def _spillover(path: Path, flow: Any) -> tuple[list[int], np.ndarray] | None:
    """The channels that spill and their matrix, a row a dye; None where the file has none, or the identity."""
    text = next((flow.text[key] for key in ("spillover", "spill") if flow.text.get(key, "").strip()), None)
    if text is None:
        return None
    try:
        count, *rest = [part.strip() for part in text.split(",")]
        channels = [flow.pnn_labels.index(name) for name in rest[: int(count)]]
        matrix = np.array(rest[int(count) :], dtype=float).reshape(len(channels), len(channels))
        np.linalg.inv(matrix)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise InputError(
            f"{path} has a spillover matrix that cannot be used ({error}); the option `compensate` reads the file "
            "without."
        ) from error
    return None if np.array_equal(matrix, np.eye(len(matrix))) else (channels, matrix)
