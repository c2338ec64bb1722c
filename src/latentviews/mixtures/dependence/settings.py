"""What is asked for where views depend inside classes, read and checked."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._parameters import AutoOr, Constraint, Count, Share, Such, is_number
from latentviews._validation import is_auto
from latentviews.core.kernels.spaces import space_of


class Copulas(BaseEstimator):
    r"""Classes whose views may depend on each other, for `MultiViewMixture`'s ``dependence``.

    More components than classes, each a Gaussian copula over margins without a shape (mixtures of copulas: Kosmidis &
    Karlis 2016), are fitted by EM from several starts and merged into classes by two costs (merging of components:
    Hennig 2010). Of all the partitions the one that agrees best with the others is kept. Nothing is asked of the views
    but that they are real columns.

    Where there are fewer than 16 rows per column and class, every class is one component, with correlations drawn to
    what the components have in common; held-out rows choose the start and count the classes. With ``noise`` merging is
    the only way.

    .. math:: p(x) = \sum_g \pi_g\, c_{R_g}\bigl(F_{g1}(x_1), \ldots, F_{gd}(x_d)\bigr) \prod_j f_{gj}(x_j)

    with the density c_R of a Gaussian copula of correlations R; a class is a set of components g.

    Parameters
    ----------
    n_starts : int, default=4
        Gaussian mixtures and runs of k-means to start from, so many of each; the spectral estimate is one more. Where
        their partitions agree to less than .7 (mean adjusted Rand index with the one chosen), twice as many follow.
    n_parts : int, default=10
        Components before merging; at least twice as many as classes are used, and fewer where rows are few. Where the
        number of classes is not given and three quarters of them are classes, twice as many are tried.
    bandwidth : float or "auto", default="auto"
        Of the margins, in standard deviations of their columns; at least the step of rounded or counted values. "auto"
        gives every component and column its own: the deviation of its rows, at most .2 of the column's, while classes
        are found, and Silverman's rule for its density. Columns with a point mass keep .2 until densities have it
        apart. Where noise is a class, the densities are those that classes were found with.
    noise : bool, default=False
        Whether noise is a class of its own, -1: rows that a uniform background explains best, rows of components that
        are sparser than if all rows were spread evenly over the range of the columns, and rows of components lighter
        than ``least`` that a valley parts from all others. Rows far outside the range are noise then, too. If not, all
        rows go to the class that is most probable without the background.
    ratio : float, default=0.75
        Where the number of classes is not given: valleys of the density above this share of the lower peak beside
        them do not part classes. Components with no valley between them are classes of their own only where they have
        50 rows per column, no two share .12 of the rows of the smaller one, and held-out rows are likelier by .2 in the
        logarithm than under one component for both.
    least : float, default=0.005
        Where the number of classes is not given, or noise is a class: the weight below which a component is no class.
    max_iter : int, default=60
    tol : float, default=1e-4
        EM stops when a step gains less log-likelihood per row.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Copulas, MultiViewMixture
    >>> X = np.random.default_rng(0).multivariate_normal([0, 0, 0], 0.2 + 0.8 * np.eye(3), size=300)
    >>> X[:120] += 5  # two classes, in each of which the columns are correlated
    >>> model = MultiViewMixture(2, dependence=Copulas(n_starts=1, n_parts=4), random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.6, 0.4])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_starts": Count(),
        "n_parts": Count(),
        "bandwidth": AutoOr(
            Such(
                lambda s: is_number(s) and 0 < s < np.inf, "positive and finite, in standard deviations of the columns"
            )
        ),
        "noise": Such(lambda v: isinstance(v, bool | np.bool_), "True, for a class of stray rows, or False"),
        "ratio": Share("in (0, 1]", one=True),
        "least": Share("a weight in [0, 1)", zero=True),
        "max_iter": Count(),
        "tol": Such(lambda gain: is_number(gain) and gain > 0, "positive, a gain of log-likelihood per row"),
    }

    def __init__(
        self,
        n_starts: int = 4,
        n_parts: int = 10,
        bandwidth: float | str = "auto",
        noise: bool = False,
        ratio: float = 0.75,
        least: float = 0.005,
        max_iter: int = 60,
        tol: float = 1e-4,
    ):
        self.n_starts = n_starts
        self.n_parts = n_parts
        self.bandwidth = bandwidth
        self.noise = noise
        self.ratio = ratio
        self.least = least
        self.max_iter = max_iter
        self.tol = tol


def is_dependence(dependence: Any) -> bool:
    """Whether a value of the parameter ``dependence`` stands for something."""
    named = isinstance(dependence, str) and dependence in ("copula", "auto")
    return dependence is None or named or isinstance(dependence, Copulas)


def read_copulas(dependence: Any) -> Copulas:
    """What the parameter ``dependence`` stands for."""
    return Copulas() if isinstance(dependence, str) else dependence


def check_dependence(model: Any, blocks: Sequence[int], prototypes: Sequence[Any], labels: np.ndarray | None) -> None:
    """Sentences on what does not go with dependent views."""
    read_copulas(model.dependence)
    for name in ("polish", "density_bandwidth"):
        if not isinstance(getattr(model, name), str) or getattr(model, name) != "auto":
            raise ValueError(
                f"With dependence, {name} has no part in the fit, so it must stay 'auto'; got "
                f"{getattr(model, name)!r}. Copulas(bandwidth=...) sets the width of the densities."
            )
    if len(set(blocks)) < len(blocks):
        raise ValueError("With dependence, every view has distributions of its own; exchangeable must be False.")
    spaces = [space_of(phi) for phi in prototypes]
    if any(space is None or not space.affine for space in spaces):
        view, space = next((t, space) for t, space in enumerate(spaces) if space is None or not space.affine)
        data = "objects without a density" if space is None else f"{space.name} data"
        raise ValueError(
            f"With dependence, views are real columns; view {view} has a kernel for {data}. Leave the view out, or "
            "dependence at None."
        )
    if model.warm_start:
        raise ValueError("With dependence there is no warm start; every fit tries its starts anew.")
    if labels is not None and is_auto(model.n_components):
        raise ValueError('Known classes in y need their number: give n_components instead of "auto".')
