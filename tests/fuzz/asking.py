"""Arguments by chance, of which at most one cannot be."""

from collections.abc import Collection
from typing import Any

import numpy as np

Rng = np.random.Generator
Offers = dict[str, tuple[list[Any], list[Any]]]  # what an argument may be, and what it must not be


def picked(rng: Rng, values: list[Any]) -> Any:
    """One of some values."""
    return values[int(rng.integers(len(values)))]


def asked(rng: Rng, offers: Offers, required: Collection[str], *, wild: bool) -> dict[str, Any]:
    """All that is required and some of the rest; where it is ``wild`` one argument cannot be."""
    wanted = [name for name in offers if name in required or rng.random() < 0.4]
    chosen = {name: picked(rng, offers[name][0]) for name in wanted}
    if wild:
        name = picked(rng, list(offers))
        chosen[name] = picked(rng, offers[name][1])
    return chosen
