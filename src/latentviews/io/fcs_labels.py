"""Classes back into an FCS file: a copy with one more channel, everything else byte for byte as it was."""

import re
from pathlib import Path

import numpy as np

from latentviews.io.source import InputError

CHANNEL = "latentviews_class"
HEADER = 58  # bytes: the version, and where text, data and analysis begin and end
LARGEST = 99_999_999  # an offset that the header has room for
TYPES = {("F", 32): "f4", ("D", 64): "f8", ("I", 8): "u1", ("I", 16): "u2", ("I", 32): "u4", ("I", 64): "u8"}
PARTS = {"DATA": b"", "STEXT": b"", "ANALYSIS": b""}  # that a file may have beside its text, in the order written here


def write_labels(source: Path, path: Path, labels: np.ndarray, n_classes: int) -> None:
    """A copy of ``source`` whose channel `CHANNEL` holds every event's class; noise is the number after the last."""
    content = source.read_bytes()
    offsets = _header(content)
    text = content[offsets[0] : offsets[1] + 1]
    keywords = _Keywords(text)
    parts = {name: _part(content, keywords, name, offsets) for name in PARTS}
    values = np.where(labels < 0, n_classes, labels)
    parts["DATA"] = _with_channel(source, parts["DATA"], keywords, values)
    if keywords.channel(CHANNEL) is None:
        keywords.add_channel(n_classes + 1, _width(source, keywords))
    path.write_bytes(_assembled(content[:10], keywords, parts))


class _Keywords:
    """The text of a file, in which values are replaced and others added; the rest stays as it is."""

    def __init__(self, text: bytes):
        self.delimiter = text[:1]
        self.text = text if text.endswith(self.delimiter) else text + self.delimiter

    def _found(self, key: str) -> re.Match[bytes] | None:
        mark = re.escape(self.delimiter)
        return re.search(mark + re.escape(key.encode()) + mark + b"([^" + mark + b"]*)", self.text, re.IGNORECASE)

    def get(self, key: str) -> str | None:
        """The value of a keyword."""
        found = self._found(key)
        return None if found is None else found[1].decode("latin-1").strip()

    def number(self, key: str) -> int:
        """The same as a whole number, zero where it is none."""
        value = self.get(key) or ""
        return int(value) if value.isdecimal() else 0

    def put(self, key: str, value: object) -> None:
        """Replace a value."""
        found = self._found(key)
        if found is not None:
            start, end = found.span(1)
            self.text = self.text[:start] + str(value).encode() + self.text[end:]

    def channel(self, name: str) -> int | None:
        """The number of a channel, from 1."""
        count = self.number("$PAR")
        return next((n for n in range(1, count + 1) if self.get(f"$P{n}N") == name), None)

    def add_channel(self, top: int, bits: int) -> None:
        """One more channel, linear, for whole numbers below ``top``."""
        n, mark = self.number("$PAR") + 1, self.delimiter.decode("latin-1")
        self.put("$PAR", n)
        added = {"N": CHANNEL, "S": CHANNEL, "B": bits, "E": "0,0", "G": "1", "R": top}
        pairs = [part for key, value in added.items() for part in (f"$P{n}{key}", str(value))]
        self.text += (mark.join(pairs) + mark).encode()


def _header(content: bytes) -> list[int]:
    """Where text, data and analysis begin and end; zero where that is said in the text."""
    fields = [content[10 + 8 * i : 18 + 8 * i].strip() for i in range(6)]
    return [int(field) if field.isdigit() else 0 for field in fields]


def _part(content: bytes, keywords: _Keywords, name: str, offsets: list[int]) -> bytes:
    """A part of the file by the offsets in its header, or in its text where the header has none."""
    begin, end = {"DATA": offsets[2:4], "ANALYSIS": offsets[4:6]}.get(name, [0, 0])
    if not end:
        begin, end = keywords.number(f"$BEGIN{name}"), keywords.number(f"$END{name}")
    return content[begin : end + 1] if end > begin > 0 else b""


def _width(source: Path, keywords: _Keywords) -> int:
    """How many bits a value of the new channel takes: as many as one of the first."""
    bits, kind = keywords.number("$P1B"), (keywords.get("$DATATYPE") or "").upper()
    if (kind, bits) not in TYPES:
        raise InputError(f"{source} holds data of type {kind!r} with {bits} bits; no channel can be added.")
    return bits


def _with_channel(source: Path, data: bytes, keywords: _Keywords, values: np.ndarray) -> bytes:
    """The events with the values in one more channel, or in place of those that an earlier copy has."""
    sizes = [keywords.number(f"$P{n}B") for n in range(1, keywords.number("$PAR") + 1)]
    width = sum(sizes) // 8
    if any(size % 8 for size in sizes) or not width or len(values) * width > len(data):
        raise InputError(f"{source} holds events that do not fill whole bytes; no channel is added to it.")
    order = "<" if (keywords.get("$BYTEORD") or "").startswith("1") else ">"
    kind = TYPES[(keywords.get("$DATATYPE") or "").upper(), _width(source, keywords)]
    events = np.frombuffer(data, dtype=np.uint8)[: len(values) * width].reshape(len(values), width)
    column = values.astype(order + kind)[:, None].view(np.uint8)
    known = keywords.channel(CHANNEL)
    before = width if known is None else sum(sizes[: known - 1]) // 8
    after = width if known is None else sum(sizes[:known]) // 8
    return np.hstack([events[:, :before], column, events[:, after:]]).tobytes()


def _assembled(version: bytes, keywords: _Keywords, parts: dict[str, bytes]) -> bytes:
    """Header, text and parts one after the other; the offsets in the text are found by writing it until they fit."""
    size = -1
    while size != len(keywords.text):
        size = len(keywords.text)
        place, found = HEADER + size, {}
        for name, part in parts.items():
            found[name] = (place, place + len(part) - 1) if part else (0, 0)
            place += len(part)
            keywords.put(f"$BEGIN{name}", found[name][0])
            keywords.put(f"$END{name}", found[name][1])
    ends = [(HEADER, HEADER + size - 1), found["DATA"], found["ANALYSIS"]]
    fields = [0 if max(pair) > LARGEST else offset for pair in ends for offset in pair]
    header = version + b"".join(f"{offset:>8d}".encode() for offset in fields)
    return header + keywords.text + b"".join(parts.values())
