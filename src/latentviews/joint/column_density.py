"""Marginals and conditionals of a joint density."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from latentviews._numbers import brief, generator_of
from latentviews._validation import check_count
from latentviews.core.checked import Spaces, refuse_outside


@dataclass(frozen=True, eq=False)
class ColumnDensity:
    """The density of some columns: a marginal or a conditional of a fitted `LowRankDensity`.

    Attributes
    ----------
    joint : a density over numbered columns
    columns : list of int
        In the order in which rows are given.
    names : list of str or None
        Theirs, by which they are found in a data frame.
    spaces : dict
        Where the values of columns may lie, by number.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LowRankDensity, ProductMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) + 6.0 * rng.integers(2, size=(200, 1))
    >>> model = LowRankDensity(method=ProductMixture(ranks=(2,), n_folds=2), random_state=0).fit(X)
    >>> given = model.conditional([0], {1: 6.0})
    >>> bool(given.score_samples([6.0])[0] > given.score_samples([0.0])[0])
    True
    """

    joint: Any
    columns: list[int]
    names: list[str] | None = None
    spaces: Spaces = field(default_factory=dict)

    def __repr__(self) -> str:
        return brief(self)

    def _table(self, X: Any) -> np.ndarray:
        if self.names is not None and hasattr(X, "columns"):
            if not set(self.names) <= set(X.columns):
                raise ValueError(f"Rows need the columns {self.names}; got {list(X.columns)}.")
            X = X[self.names]
        with np.errstate(all="ignore"):  # of a sum by which infinity is looked for
            rows = check_array(X, dtype=float, ensure_2d=False, ensure_min_samples=0, ensure_all_finite="allow-nan")
        rows = rows[:, None] if rows.ndim == 1 and len(self.columns) == 1 else np.atleast_2d(rows)
        if rows.ndim != 2 or rows.shape[1] != len(self.columns):
            raise ValueError(f"Rows need a value for each of the columns {self.columns}; got shape {rows.shape}.")
        table = np.full((len(rows), 1 + max(self.columns)), np.nan)
        table[:, self.columns] = rows
        labels = None if self.names is None else dict(zip(self.columns, self.names, strict=True))
        refuse_outside(table, {j: space for j, space in self.spaces.items() if j in self.columns}, labels)
        return table

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row; a value may be missing.

        Parameters
        ----------
        X : array of shape (n, columns) or DataFrame

        Returns
        -------
        array of shape (n,)
        """
        return self.joint.log_density(self._table(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from the density.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        array of shape (n_samples, columns)
        """
        rng = generator_of(random_state)
        return self.joint.sample(check_count("n_samples", n_samples), rng, 1 + max(self.columns))[:, self.columns]
