"""What a fitted chain can be asked of its views."""

from typing import Any

import numpy as np

from latentviews.core.tables import Columns
from latentviews.mixtures.conditional import Conditional
from latentviews.mixtures.questions import view_number
from latentviews.sequences.estimation import ChainEstimate


class ChainQuestionsMixin:
    """Questions about single views, for a fitted chain."""

    views_: Columns

    def conditional(self, X: Any, view: int | str, *, lengths: Any = None) -> Conditional:
        """The distribution of one view given all other views at all times, for every row.

        States are smoothed with that view masked at all times, and the view is a mixture of their emissions: what a
        sensor would have shown, or the angles of a protein given its amino acids.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Values of the view itself are not used, and may be NaN.
        view : int or str
            The number or the name of a view.
        lengths : list of ints or None

        Returns
        -------
        Conditional
            With ``mean``, ``quantile``, ``density`` and ``sample``, rows by themselves.

        Examples
        --------
        >>> import numpy as np
        >>> from latentviews import KernelHMM
        >>> from latentviews.datasets import make_hmm
        >>> X, states, truth = make_hmm(1000, random_state=0)
        >>> twin = X + np.random.default_rng(0).normal(size=X.shape)
        >>> model = KernelHMM(3, views=[[0], [1]], random_state=0).fit(np.hstack([X, twin]))
        >>> model.conditional(np.hstack([X, twin]), view=1).mean().shape
        (1000, 1)
        """
        table, lengths = self._sequences(X, lengths)  # type: ignore[attr-defined]
        if len(self.views_) < 2:
            raise ValueError(
                "conditional predicts one view from the others, and this model has one view; give `views`, one list of "
                "columns per sensor, or ask `forecast` what comes next."
            )
        chain: ChainEstimate = self._chain  # type: ignore[attr-defined]
        return view_given_others(chain, table, lengths, view_number(self, view))


def view_given_others(chain: ChainEstimate, table: np.ndarray, lengths: np.ndarray, view: int) -> Conditional:
    """A mixture of the emissions of a view, P(h_i | other views at all times) of each at row i."""
    masked = table.copy()
    masked[:, chain.columns[view]] = np.nan
    return Conditional(chain.smoothing(masked, lengths).posteriors, chain.components[view])
