"""What a fitted mixture can be asked of its views: expectations, conditionals, intervals."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import is_foreign, namespace, to_numpy
from latentviews._numbers import generator_of
from latentviews._validation import (
    check_count,
    check_weights,
)
from latentviews.core import streams
from latentviews.core.components import Components, Query, evaluate
from latentviews.core.tables import Columns, read_table
from latentviews.core.view_names import view_names
from latentviews.mixtures.inference import (
    Bootstrap,
    Expectation,
    ViewGivenOthers,
    expectation,
    matching_order,
    resample,
)
from latentviews.mixtures.lookup import label_tables, most_probable
from latentviews.mixtures.problem import classes_of
from latentviews.mixtures.reading import is_view


class ViewQuestionsMixin:
    """Questions about single views, for a fitted mixture."""

    views_: Columns
    weights_: np.ndarray
    components_: list[Any]
    n_components_: int
    _reorder: Callable[[np.ndarray], None]

    def expectation(
        self, f: Callable[[np.ndarray], Any], X: Any, view: int | str = 0, sample_weight: Any = None
    ) -> Expectation:
        """E[f(x_t) | h] for every class, with standard errors, by signed weights from the other views.

        Any function on rows (n, d_t) will do, in no RKHS and with no smoothing: the other views say how much each row
        counts for each class. ``components_[view].expectation(f)`` is the smoothed counterpart without data.
        After a fit with ``dependence`` all views say so, since the others alone would be misled.

        Parameters
        ----------
        f : callable
            A function of rows (n, d), one value per row.
        X : array or DataFrame of shape (n_samples, n_features)
        view : int or str
            The number or the name of a view.
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        Expectation
            Values and standard errors, one per class, and intervals.
        """
        table, view = self._table(X), self._view_index(view)
        columns = self.views_[view]
        weights = check_weights(sample_weight, table)
        weights = np.ones(len(table)) if weights is None else weights
        present = ~np.isnan(table[:, columns]).any(axis=1)
        table, weights = table[present], weights[present]
        return expectation(evaluate(f, table[:, columns]), classes_of(self).functional_weights(table, view, weights))

    def conditional(self, X: Any, view: int | str) -> ViewGivenOthers:
        """The distribution of one view given the others, for every row: mean, density and draws.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        view : int or str
            The number or the name of a view.

        Returns
        -------
        ViewGivenOthers
            With ``mean``, ``density`` and ``sample``.
        """
        return classes_of(self).conditional(self._table(X), self._view_index(view))

    def bootstrap(
        self,
        X: Any,
        n_resamples: int = 200,
        f: Callable[[np.ndarray], Any] | None = None,
        view: int | str = 0,
        random_state: Any = None,
        sample_weight: Any = None,
    ) -> Bootstrap:
        """Refits to resampled rows: intervals for the weights, and for E[f(x_t) | h] if ``f`` is given.

        Every refit starts at this one, so classes keep their names. It needs a polished fit.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        n_resamples : int, default=200
        f : callable or None
            A function of rows (n, d_t), one value per row.
        view : int or str
            The number or the name of a view.
        random_state : int, RandomState or None
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        Bootstrap
            Draws of the weights, and of the expectations.
        """
        table, rng = self._table(X), generator_of(random_state)
        n_resamples, weights = check_count("n_resamples", n_resamples, 2), check_weights(sample_weight, table)
        return resample(classes_of(self), table, f, self._view_index(view), n_resamples, rng, weights)

    def align_to(self, reference: Any) -> Self:
        """Rename the classes so that they follow those of another fit, and return this one.

        Parameters
        ----------
        reference : fitted MultiViewMixture
            A fit with as many classes, and views of the same sizes.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        check_is_fitted(reference)
        views = getattr(reference, "components_", [None])
        if not hasattr(reference, "n_components_") or not all(isinstance(view, Components) for view in views):
            raise TypeError(f"align_to follows the classes of a MultiViewMixture; got a {type(reference).__name__}.")
        here, there = ([len(columns) for columns in model.views_] for model in (self, reference))
        if reference.n_components_ != self.n_components_ or here != there:
            raise ValueError(
                f"align_to needs a fit with {self.n_components_} classes and views of {here} columns; got "
                f"{reference.n_components_} and {there}."
            )
        self._reorder(matching_order(self.components_, reference.components_))
        return self

    def product_expectation(self, functions: Mapping[int | str, Query]) -> float:
        """The mean of a product of functions of several views, E[Π_t f_t(x_t)] = Σ_h π_h Π_t E[f_t(x_t) | h].

        The multilinear query of Song, Anandkumar, Dai & Xie (2014), section 3.1: views are independent inside classes,
        so their functions are averaged one by one, and rows that have all of these views are not needed.

        Parameters
        ----------
        functions : dict from the number or name of a view to a function of its rows (n, d_t)
            Or to a pair (points, coefficients), as ``components_[t].expectation`` takes it. Categories are codes, in
            the order of ``categories_``.

        Returns
        -------
        float

        Examples
        --------
        >>> from latentviews import MultiViewMixture
        >>> from latentviews.datasets import make_multiview
        >>> X, y, truth = make_multiview(2000, 2, design="gaussian", random_state=0)
        >>> model = MultiViewMixture(2, random_state=0).fit(X)
        >>> both = model.product_expectation({0: lambda x: x[:, 0], 2: lambda x: x[:, 0]})
        >>> bool(abs(both - (X[:, 0] * X[:, 2]).mean()) < 0.2)
        True
        """
        check_is_fitted(self)
        if not isinstance(functions, Mapping) or not functions:
            raise ValueError(f"product_expectation takes {{view: function}} for one view or more; got {functions!r}.")
        if classes_of(self).dependence is not None:
            raise ValueError(
                "product_expectation multiplies the means of views, which are dependent inside the classes of this "
                "fit; average over draws from `sample` instead, or fit with dependence=None."
            )
        means = [self.components_[self._view_index(view)].expectation(f) for view, f in functions.items()]
        return float(self.weights_ @ np.prod(means, axis=0))

    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._of_rows(X, classes_of(self).log_joint, 0)

    def _labels(self, X: Any) -> np.ndarray:
        tables = label_tables(classes_of(self))
        return self._of_rows(X, most_probable(classes_of(self), tables), 0 if tables is None else 2**20)

    def _of_rows(self, X: Any, answer: Callable[[Any], Any], fewest: int) -> Any:
        """What is answered about all rows, batch by batch; in main memory of no fewer rows than ``fewest``."""
        data, _ = read_table(self, X, reset=False)
        size = max(streams.rows_at_once(8 * len(self.weights_), data), 0 if is_foreign(data) else fewest)
        parts = [answer(batch) for batch, _ in streams.batches(data, size=size)]
        return namespace(parts[0]).concat(parts, axis=0)

    def _table(self, X: Any) -> np.ndarray:
        """All rows in memory."""
        check_is_fitted(self)
        data, _ = read_table(self, X, reset=False)
        return np.concatenate([to_numpy(batch) for batch, _ in streams.batches(data)])

    def _view_index(self, view: int | str) -> int:
        """The number of a view, given that or its name."""
        check_is_fitted(self)
        return view_number(self, view)


def view_number(model: Any, view: int | str) -> int:
    """The number of a view of a fitted model, given that or its name."""
    names = view_names(model)
    if isinstance(view, str):
        if view in names:
            return names.index(view)
        raise ValueError(f"view {view!r} is none of the views, {', '.join(map(repr, names))}.")
    if not is_view(view, len(names)):
        raise ValueError(f"view must be a name or a number from 0 to {len(names) - 1}; got {view!r}.")
    return int(view)
