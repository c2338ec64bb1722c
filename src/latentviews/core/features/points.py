"""Points of the unit cube that random frequencies are made from: orthogonal, on a lattice, or hashed."""

from typing import Any

import numpy as np
from array_api_compat import device
from scipy import special

from latentviews._arrays import namespace

BITS = 30  # of the extensible lattice: a billion points before it repeats
KOROBOV = 14471  # a generator that is good for every power of two (Hickernell, Hong, L'Ecuyer & Lemieux 2000)
TINY = 2.0**-54


def orthogonal_points(size: int, n_coordinates: int, rng: np.random.Generator) -> np.ndarray:
    """Points of the unit cube whose normal quantiles are orthogonal, ``n_coordinates`` at a time."""
    blocks = []
    for _ in range(-(-size // n_coordinates)):
        basis, triangle = np.linalg.qr(rng.normal(size=(n_coordinates, n_coordinates)))
        basis = basis * np.sign(np.diag(triangle))  # uniform over rotations
        blocks.append(basis * np.sqrt(rng.chisquare(n_coordinates, size=(n_coordinates, 1))))
    return np.clip(special.ndtr(np.concatenate(blocks)[:size]), TINY, 1 - 2 * TINY)


def lattice_points(start: int, size: int, shift: Any) -> Any:
    """Points ``start``, …, ``start + size - 1`` of an extensible lattice in the unit cube, moved by ``shift``.

    Any 2^p points from a multiple of 2^p on are a whole lattice of rank one.
    """
    xp, where, mask = namespace(shift), device(shift), 2**BITS - 1
    powers = xp.asarray([pow(KOROBOV, j, 2**BITS) for j in range(shift.shape[0])], dtype=xp.int64, device=where)
    place = xp.arange(start, start + size, dtype=xp.int64, device=where)
    turned = xp.zeros_like(place)
    for _ in range(BITS):  # the bits of i in reverse are its van der Corput number
        turned, place = (turned << 1) | (place & 1), place >> 1
    points = xp.astype((turned[:, None] * powers[None, :]) & mask, shift.dtype) / 2**BITS + shift
    return xp.clip(points - xp.floor(points), min=TINY, max=1 - 2 * TINY)


def hashed_points(seed: int, start: int, size: int, n_coordinates: int, x: Any) -> Any:
    """Points ``start``, …, ``start + size - 1`` of a stream of independent ones, where ``x`` lives, in float64.

    The numbers are a hash of the seed and their place (splitmix64): the same in every array library, on every device.
    """
    xp = namespace(x)
    first, count = start * n_coordinates, size * n_coordinates
    bits = xp.arange(first, first + count, dtype=xp.int64, device=device(x)) * _signed(0x9E3779B97F4A7C15)
    bits = bits + _signed(seed * 0xD1342543DE82EF95 + 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits = (bits ^ ((bits >> shift) & (2 ** (64 - shift) - 1))) * _signed(factor)
    numbers = (xp.astype((bits >> 11) & (2**53 - 1), xp.float64) + 0.5) * 2.0**-53
    return xp.reshape(numbers, (size, n_coordinates))


def _signed(number: int) -> int:
    """The 64 low bits of a number, read as a signed integer."""
    return (number + 2**63) % 2**64 - 2**63
