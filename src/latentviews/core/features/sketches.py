"""Polynomial kernels without their monomials: sketches of tensor products."""

import math
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, namespace
from latentviews._parameters import Constraint, Count, Seed, WithData, check_parameters
from latentviews._validation import all_or_nothing, check_range, check_rows
from latentviews.core.kernels.polynomial import Polynomial


class TensorSketchFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Features of a polynomial kernel without its monomials (Pham & Pagh 2013).

    .. math:: \varphi(x) = F^{-1}\bigl(F(C_1 \tilde x) \cdots F(C_p \tilde x)\bigr), \qquad
              \tilde x = (\sqrt{s}\, x, \sqrt{c})

    Each C_i is a count sketch: every column of x̃ is added, with a random sign, to one of ``n_sketch`` sums. The
    circular convolution of p sketches, by Fourier transforms F, is a sketch of the p-fold tensor product. The inner
    product is unbiased for the kernel.

    Parameters
    ----------
    kernel : Polynomial, default=Polynomial()
    n_sketch : int, default=256
        The number of features.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : Polynomial
    sketches_ : array of shape (degree, n_features + 1, n_sketch)
        The matrices C_i; the last row is that of the constant.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.eye(3)
    >>> phi = TensorSketchFeatures(Polynomial(2), 4096, random_state=0).fit_transform(x)
    >>> (phi @ phi.T).round(1)
    array([[4., 1., 1.],
           [1., 4., 1.],
           [1., 1., 4.]])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "kernel": WithData(),
        "n_sketch": Count(),
        "random_state": Seed(),
    }

    def __init__(self, kernel: Polynomial | None = None, n_sketch: int = 256, *, random_state: Any = None):
        self.kernel = kernel
        self.n_sketch = n_sketch
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sketches for as many columns as ``X`` has.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        columns = check_rows(self, X, reset=True).shape[1] + 1
        kernel = Polynomial() if self.kernel is None else self.kernel
        if not isinstance(kernel, Polynomial):
            raise TypeError(
                f"TensorSketchFeatures needs a Polynomial kernel; got {type(kernel).__name__}. FourierFeatures takes "
                "shift-invariant kernels, LandmarkFeatures any."
            )
        self.kernel_ = kernel.adapt(X)
        degree, size = self.kernel_.checked()[0], self.n_sketch
        rng = np.random.default_rng(self.random_state)
        places, signs = rng.integers(size, size=(degree, columns)), rng.choice([-1.0, 1.0], size=(degree, columns))
        self.sketches_ = signs[:, :, None] * (places[:, :, None] == np.arange(size))
        self._n_features_out = size
        return self

    def transform(self, X: Any) -> Any:
        """The feature vectors of the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        xp, (_, scale, offset) = namespace(x), self.kernel_.checked()
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence
            transforms = [
                xp.fft.rfft(
                    math.sqrt(scale) * (x @ in_library_of(sketch[:-1], x))
                    + math.sqrt(offset) * in_library_of(sketch[-1], x)
                )
                for sketch in self.sketches_
            ]
            product = math.prod(transforms[1:], start=transforms[0])
            return check_range(xp.fft.irfft(product, n=self._n_features_out))
