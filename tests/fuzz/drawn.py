"""A random generator whose choices hypothesis makes, so that a fault shrinks to the simplest case that has it."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

DECISIONS = 40  # that are hypothesis's: what comes later is the thousandth answer of a rater, not another case


class DrawnGenerator(np.random.Generator):
    """Single choices, integers and chances are drawn by hypothesis; arrays come from a seed that it draws too."""

    def __init__(self, data: Any) -> None:
        super().__init__(np.random.PCG64(data.draw(st.integers(0, 2**16))))
        self._draw = data.draw
        self._left = DECISIONS

    def _decides(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def choice(self, a: Any, size: Any = None, replace: bool = True, **options: Any) -> Any:
        """One of ``a``, or a few."""
        options_only = not isinstance(a, int | np.integer) and not options
        if not options_only or np.ndim(size or 0) or not self._decides():
            return super().choice(a, size, replace, **options)
        one, size = st.integers(0, len(a) - 1), size if size is None else int(size)
        several = one if size is None else st.lists(one, min_size=size, max_size=size, unique=not replace)
        return np.asarray(a)[self._draw(several)]

    def integers(self, low: Any, high: Any = None, size: Any = None, **options: Any) -> Any:
        """An integer, or an array of them."""
        if size is not None or not self._decides():
            return super().integers(low, high, size, **options)
        low, high = (0, low) if high is None else (low, high)
        return np.int64(self._draw(st.integers(int(low), int(high) - 1)))

    def random(self, size: Any = None, **options: Any) -> Any:
        """A chance, or an array of them; the simplest is that what happens now and then does not."""
        if size is not None or not self._decides():
            return super().random(size, **options)
        return 0.99 - self._draw(st.integers(0, 99)) / 100
