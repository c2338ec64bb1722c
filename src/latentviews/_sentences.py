"""Sentences for people: warnings that point at who called, and counts in words."""

import sys
import warnings


def warn_user(sentence: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the line that called this package, however deep in it the cause lies."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    """Whether a module is of this package, or of scikit-learn's callbacks, which wrap its methods."""
    return module.split(".")[0] == "latentviews" or module.startswith("sklearn.callback")


def counted(number: int, noun: str, several: str = "") -> str:
    """1 row, 2 rows; ``several`` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"
