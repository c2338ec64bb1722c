"""Projections from fewer landmarks: only their span matters, and it need not be exact."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latentviews._arrays import take_rows, to_numpy
from latentviews._numbers import evenly
from latentviews.core.features.landmarks import LandmarkFeatures, first_landmarks
from latentviews.core.moments import Embed
from latentviews.core.whitening import Whitening

ENOUGH = 10_000  # rows of a pilot below which there is little to save
JUDGED = 2_048  # rows of it that projections are compared on
MOST = 64  # landmarks of a view; more were asked for, and are taken as they are
STEP = 8  # numbers of landmarks are multiples of it
LEFT = 0.01  # share of a projection's size that may be left; what a pilot leaves open is several times as large


def leaner(embed: Embed, whitening: Whitening, rows: Any, weights: Any = None) -> tuple[Embed, Whitening]:
    """The views from the fewest landmarks, and the whitening there: the same projections to a hundredth.

    They are compared on 2,048 rows of the pilot. Views with the same features have the same landmarks, as many as the
    projections of all of them take.
    """
    features = list(getattr(embed, "features", ()))
    maps = {id(phi): phi for phi in features if type(phi) is LandmarkFeatures and len(phi.landmarks_) <= MOST}
    if not maps or rows.shape[0] < ENOUGH:
        return embed, whitening
    some = evenly(rows.shape[0], JUDGED)
    raw = embed(take_rows(rows, some))
    size = 1.0 if weights is None else np.sqrt(to_numpy(weights)[some])[:, None]
    down = list(whitening.down)
    for phi in maps.values():
        which = [t for t, one in enumerate(embed.features) if one is phi]  # type: ignore[attr-defined]
        values = np.concatenate([size * to_numpy(raw[t]) for t in which])
        fewer, found = _from_fewer(phi, values, [down[t] for t in which])
        for t, one in zip(which, found, strict=True):
            features[t], down[t] = fewer, one
    return replace(embed, features=tuple(features)), replace(whitening, down=tuple(down))  # type: ignore[type-var]


def _from_fewer(
    phi: LandmarkFeatures, values: np.ndarray, down: Sequence[np.ndarray]
) -> tuple[LandmarkFeatures, Sequence[np.ndarray]]:
    """The first landmarks that suffice and the projections from them, by least squares over rows of kernel values.

    With values = Q R, what the first m landmarks leave of a projection is the norm of Qᵀ z from its row m on.
    """
    q, r = np.linalg.qr(values.astype(float))
    z = q.T @ (values @ (phi.tail_ @ np.concatenate(down, axis=1)))
    left = np.cumsum(z[::-1] ** 2, axis=0)[::-1]
    enough = int((left > LEFT**2 * left[0]).any(axis=1).sum())
    size = -(-enough // STEP) * STEP
    if not 0 < size < len(phi.landmarks_) or not np.all(np.diag(r)[:size]):
        return phi, down
    fewer = first_landmarks(phi, size)
    found = np.linalg.pinv(fewer.tail_) @ np.linalg.solve(r[:size, :size], z[:size])
    return fewer, np.split(found, len(down), axis=1)
