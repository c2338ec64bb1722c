"""Codes as indicators: the feature map of the delta kernel."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, to_numpy
from latentviews._parameters import AutoOr, Constraint, Count, check_parameters
from latentviews._validation import all_or_nothing, check_rows, is_auto
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.spaces import Discrete


class OneHotFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The delta kernel's feature map: one indicator per value; a value not seen in ``fit`` maps to zero.

    .. math:: \varphi(x)_v = 1[x = v]

    Parameters
    ----------
    n_categories : int or "auto", default="auto"
        The values are 0, …, n_categories - 1, or all different rows seen in ``fit``.

    Attributes
    ----------
    kernel_ : Delta
    categories_ : array of shape (n_categories, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> OneHotFeatures().fit_transform(np.array([[2.0], [5.0], [2.0]]))
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_categories": AutoOr(Count()),
    }

    space = Discrete()

    def __init__(self, n_categories: int | str = "auto"):
        self.n_categories = n_categories

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        self.kernel_ = Delta()
        if is_auto(self.n_categories):
            self.categories_ = np.unique(x, axis=0)
        else:
            self.categories_ = np.arange(float(self.n_categories))[:, None]
            self._check_codes(x)
        self._n_features_out = len(self.categories_)
        return self

    def _check_codes(self, x: np.ndarray) -> None:
        if x.shape[1] != 1 or not np.isin(x, self.categories_).all():
            raise ValueError(
                f"OneHotFeatures({self.n_categories}) expects one column of the codes 0 to "
                f"{self.n_categories}-1; got {x.shape[1]} column(s) with values from {x.min():g} to {x.max():g}. "
                'Use n_categories="auto" to learn the values.'
            )

    def transform(self, X: Any) -> Any:
        """The indicators of the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        return self.kernel_.gram(x, in_library_of(self.categories_, x))
