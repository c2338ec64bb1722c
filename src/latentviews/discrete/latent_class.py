"""Latent class analysis: hidden classes behind categorical items."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import TINY, posteriors_of
from latentviews._parameters import (
    AutoOr,
    Constraint,
    Count,
    Positive,
    Seed,
    Share,
    WithData,
    check_parameters,
)
from latentviews._validation import (
    all_or_nothing,
    check_weights,
    is_auto,
)
from latentviews.discrete.answers import Answers, distinct_answers
from latentviews.discrete.expectation import EMRun, Kernels, expectation, smoothed
from latentviews.discrete.inference import (
    Fitted,
    n_parameters,
    standard_errors,
    warn_of_unidentified,
)
from latentviews.discrete.logits import (
    ClassRegression,
    check_determined,
    class_probabilities,
    design_matrix,
    regression_record,
    standardized,
    taken_back,
    without_separated,
)
from latentviews.discrete.one_step import regressed_em
from latentviews.discrete.questions import ClassQuestionsMixin
from latentviews.discrete.reading import CodedRows, read_answers, smoothing_kernels, warn_of_singles
from latentviews.discrete.spectral import spectral_starts
from latentviews.discrete.starts import search

RISES = 2  # how often in a row the criterion may rise before no more classes are tried


class LatentClass(ClassQuestionsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    r"""Hidden classes behind categorical answers that are independent given the class.

    .. math:: p(x_1, \ldots, x_J) = \sum_h \pi_h \prod_j p_j(x_j \mid h)

    Every column is an item: strings, flags, numbers and pandas' categoricals are categories, NaN or None is a missing
    answer, left out of its row's product. The maximum of the likelihood is sought by exact EM on the distinct rows,
    from the spectral estimate with the delta kernel (Song, Anandkumar, Dai & Xie 2014) and from many random starts.

    Parameters
    ----------
    n_components : int or "auto", default=2
        The number of classes k; "auto" takes the one with the lowest BIC, from 1 up to ``max_components``.
    ordered : bool or list of columns, default=False
        The items, by name or number, whose categories have an order, which smoothing follows. Pandas' ordered
        categoricals are so in any case.
    smoothing : float, default=0.0
        How much of an answer's probability its kernel gives to other categories, λ of Aitchison & Aitken (1976), or of
        Wang & van Ryzin (1981) for ordered ones. Zero is the plain model.
    n_starts : int, default=150
        Random starts beside the spectral ones. All take some steps of EM, the best are taken to the end.
    max_iter : int, default=5000
        Steps of EM at the end.
    tol : float, default=1e-7
        EM ends when what is left to gain in log-likelihood is estimated below this.
    max_components : int, default=10
        Where ``n_components="auto"``.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,)
        How common the classes are, decreasing, summing to one; with covariates, on average over the rows.
    components_ : list of arrays of shape (n_categories, k), one per item
        The probability of every answer in every class.
    coefficients_ : list of arrays of shape (n_categories, k), one per item
        What smoothing makes ``components_`` of; the same without it.
    categories_ : list of arrays
        The categories of every item, in the order of the rows of ``components_``.
    ordered_ : list of bool
    log_likelihood_ : float
        At the maximum, summed over the rows.
    n_parameters_ : int
    converged_ : bool
    n_iter_ : int
    bic_curve_ : dict
        Where ``n_components="auto"``: the BIC of every number of classes tried.
    regression_ : ClassRegression or None
        Where covariates were given: the logit of the classes on them, with standard errors.
    n_components_ : int

    See Also
    --------
    class_regression, distal_outcome : covariates and outcomes of classes in three steps.

    Notes
    -----
    An answer that was not seen in fitting has probability zero: the row's log-likelihood is minus infinity, and its
    posterior is that of its other answers. A row without an answer is in the classes by their weights.

    References
    ----------
    Goodman (1974), *Biometrika* 61, 215-231; Anandkumar, Hsu & Kakade (2012), COLT.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass
    >>> rng = np.random.default_rng(0)
    >>> ill = rng.random(500) < 0.3
    >>> X = np.where(rng.random((500, 4)) < np.where(ill, 0.9, 0.1)[:, None], "yes", "no")
    >>> model = LatentClass(2, random_state=0).fit(X)
    >>> model.weights_.round(1)
    array([0.7, 0.3])
    >>> model.categories_[0].tolist(), model.components_[0].round(1).tolist()
    (['no', 'yes'], [[0.9, 0.1], [0.1, 0.9]])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": AutoOr(Count()),
        "ordered": WithData(),
        "smoothing": Share("a number from 0 to below 1", zero=True),
        "n_starts": Count(0),
        "max_iter": Count(),
        "tol": Positive(),
        "max_components": Count(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        ordered: bool | Sequence[Any] = False,
        smoothing: float = 0.0,
        n_starts: int = 150,
        max_iter: int = 5000,
        tol: float = 1e-7,
        max_components: int = 10,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.ordered = ordered
        self.smoothing = smoothing
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.max_components = max_components
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Find the classes behind the answers in ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
            As if rows were repeated: the frequencies of a table of patterns, for example.
        covariates : array or DataFrame of shape (n_samples, q) or None
            Numbers that the shares of the classes depend on, by a multinomial logit fitted in one step with the
            classes. `class_regression` does so in three steps, after the classes.

        Returns
        -------
        self
        """
        check_parameters(self)
        rows = read_answers(self, X, sample_weight, reset=True)
        answers = self._answers(rows)
        warn_of_singles(self, rows)
        kernels = smoothing_kernels(self.smoothing, rows.sizes, rows.ordered)
        rng = np.random.default_rng(self.random_state)
        run = self._chosen(answers, kernels, rng) if is_auto(self.n_components) else None
        k = int(self.n_components) if run is None else run.parameters.weights.shape[1]
        run = self._search(answers, k, kernels, rng) if run is None else run
        self.categories_, self.ordered_, self.n_components_ = rows.categories, rows.ordered, k
        self._keep(answers, run, kernels)
        self.regression_: ClassRegression | None = None
        if covariates is not None:
            self._regress(rows, covariates, kernels)
        self.n_parameters_ = n_parameters(rows.sizes, k)
        if self.regression_ is not None:
            self.n_parameters_ += (len(self.regression_.names) - 1) * (k - 1)
        warn_of_unidentified(rows.sizes, k, rng)
        return self

    def _answers(self, rows: CodedRows) -> Answers:
        """The distinct rows that say something."""
        answers, _ = distinct_answers(rows.known, rows.sizes, rows.weights)
        counted = answers.take(np.flatnonzero((answers.counts > 0) & (answers.codes >= 0).any(axis=1)))
        least = 2 if is_auto(self.n_components) else max(int(self.n_components), 2)
        n_counted = len(rows.codes) if rows.weights is None else int(np.count_nonzero(rows.weights))
        if n_counted < least or not len(counted.counts):
            raise ValueError(f"{least} classes need at least {least} rows with an answer; got n_samples = {n_counted}.")
        return counted

    def _search(self, answers: Answers, k: int, kernels: Kernels, rng: np.random.Generator) -> EMRun:
        given = list(spectral_starts(answers, k, rng))
        return search(answers, k, given, self.n_starts if k > 1 else 0, rng, self.tol, self.max_iter, kernels)

    def _chosen(self, answers: Answers, kernels: Kernels, rng: np.random.Generator) -> EMRun:
        """The fit with the lowest BIC; no more classes are tried once it has risen twice in a row."""
        runs: dict[int, EMRun] = {}
        self.bic_curve_: dict[int, float] = {}
        for k in range(1, self.max_components + 1):
            runs[k] = self._search(answers, k, kernels, rng)
            penalty = np.log(answers.n_rows) * n_parameters(answers.sizes, k)
            self.bic_curve_[k] = float(penalty - 2 * runs[k].log_likelihood[0])
            latest = list(self.bic_curve_.values())[-RISES - 1 :]
            if len(latest) > RISES and all(np.diff(latest) > 0):
                break
        return runs[min(self.bic_curve_, key=lambda k: self.bic_curve_[k])]

    def _keep(self, answers: Answers, run: EMRun, kernels: Kernels) -> None:
        """The fit, the commonest class first."""
        weights, coefficients = run.parameters.weights[0], run.parameters.coefficients[:, 0]
        order = np.argsort(-weights, kind="stable")
        self.weights_ = weights[order]
        self._keep_items(answers, coefficients[:, order], kernels)
        self.log_likelihood_ = float(run.log_likelihood[0])
        self.n_iter_, self.converged_ = run.n_iter, bool(run.converged[0])

    def _keep_items(self, answers: Answers, coefficients: np.ndarray, kernels: Kernels) -> None:
        cuts = answers.starts[1:]
        self.coefficients_ = np.split(coefficients, cuts)
        self.components_ = np.split(smoothed(coefficients, kernels, answers), cuts)

    def _regress(self, rows: CodedRows, covariates: Any, kernels: Kernels) -> None:
        """The same classes with shares that depend on covariates, all parameters fitted anew."""
        design, names = design_matrix(covariates)
        if len(design) != len(rows.codes):
            raise ValueError(f"covariates needs one row per row of X, {len(rows.codes)}; got {len(design)}.")
        counts = np.ones(len(design)) if rows.weights is None else rows.weights
        check_determined(design, names, counts)
        scaled, back = standardized(design, counts)
        answers = Answers(rows.known, counts, tuple(rows.sizes))
        start = np.concatenate(self.coefficients_)
        posteriors = expectation(answers, np.concatenate(self.components_)[:, None], np.log(self.weights_))[0][:, 0]
        found = regressed_em(answers, scaled, posteriors, start, self.max_iter, self.tol, kernels)
        priors = class_probabilities(scaled, found.logits)
        self.weights_ = counts @ priors / counts.sum()
        self._keep_items(answers, found.coefficients, kernels)
        self.log_likelihood_, self.n_iter_, self.converged_ = found.log_likelihood, found.n_iter, found.converged
        _, covariance = standard_errors(Fitted(answers, scaled, priors, found.coefficients, kernels))
        logits = back @ found.logits
        covariance = without_separated(taken_back(covariance, back), design, logits, counts)
        self.regression_ = regression_record(logits, covariance, names, found.log_likelihood)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> np.ndarray:
        """Fit, and the most probable class of every row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        y : ignored
        sample_weight, covariates
            As ``fit`` takes them.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X, y, sample_weight, covariates).predict(X, covariates)

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """The most probable class of every row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        array of int of shape (n_samples,)
        """
        return self.predict_proba(X, covariates).argmax(axis=1)

    def predict_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k).

        Without ``covariates`` a model that was fitted with them takes the average shares of the classes.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        array of shape (n_samples, k)
        """
        return posteriors_of(self._log_joint(X, covariates, least=TINY)[0])

    def transform(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)

        Returns
        -------
        array of shape (n_samples, k)
        """
        return self.predict_proba(X)

    def score_samples(self, X: Any, covariates: Any = None) -> np.ndarray:
        """The log-probability of every row's answers; minus infinity where one was not seen in fitting.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        array of shape (n_samples,)
        """
        joint, unseen = self._log_joint(X, covariates, least=0.0)
        with np.errstate(invalid="ignore"):
            return np.where(unseen | (joint.max(axis=1) == -np.inf), -np.inf, logsumexp(joint, axis=1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> float:
        """The mean log-probability of the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        float
        """
        scores = self.score_samples(X, covariates)
        weights = check_weights(sample_weight, scores)
        if weights is None:
            return float(scores.mean())
        return float(weights[weights > 0] @ scores[weights > 0] / weights.sum())

    def _log_joint(self, X: Any, covariates: Any, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Log p(row, class) over the answers that were seen in fitting, (n, k), and the rows with another."""
        check_is_fitted(self)
        rows = read_answers(self, X, reset=False)
        with np.errstate(divide="ignore"):
            joint = np.log(np.maximum(self._priors(covariates, len(rows.codes)), least))
            for codes, probabilities in zip(rows.known.T, self.components_, strict=True):
                logs = np.log(np.maximum(probabilities, least))
                joint = joint + np.where(codes[:, None] >= 0, logs[codes], 0.0)
        return joint, rows.unseen

    def _priors(self, covariates: Any, n_rows: int) -> np.ndarray:
        """P(class | covariates), (n, k), or the weights."""
        if covariates is None:
            return np.tile(self.weights_, (n_rows, 1))
        if self.regression_ is None:
            raise ValueError("covariates were not given in fit, so nothing is known of what they say of the classes.")
        priors = self.regression_.probabilities(covariates)
        if len(priors) != n_rows:
            raise ValueError(f"covariates needs one row per row of X, {n_rows}; got {len(priors)}.")
        return priors

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
