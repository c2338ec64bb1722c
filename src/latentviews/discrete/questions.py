"""What fitted latent classes can be asked: standard errors, goodness of fit, whether one class fewer would do."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import drawn_labels, generator_of
from latentviews._validation import check_count, draws_of
from latentviews.core.categories import Categories
from latentviews.discrete.answers import Answers, distinct_answers
from latentviews.discrete.expectation import ClassParameters, Kernels, accelerated_em, smoothed
from latentviews.discrete.fit_quality import GoodnessOfFit, LikelihoodRatioTest, goodness_of_fit
from latentviews.discrete.inference import Fitted, StandardErrors, standard_errors
from latentviews.discrete.logits import design_matrix, standardized
from latentviews.discrete.reading import read_answers, smoothing_kernels
from latentviews.discrete.spectral import spectral_starts
from latentviews.discrete.starts import search
from latentviews.discrete.three_step import FirstStep

REFIT_TOL = 1e-4  # of log-likelihoods on drawn rows, which differ by much more


class ClassQuestionsMixin:
    """Questions to a fitted `LatentClass`."""

    score_samples: Any
    random_state: Any
    n_parameters_: int
    categories_: list[np.ndarray]
    weights_: np.ndarray
    components_: list[np.ndarray]
    coefficients_: list[np.ndarray]
    ordered_: list[bool]
    regression_: Any
    n_components_: int
    smoothing: float
    n_starts: int
    tol: float
    max_iter: int

    def aic(self, X: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Akaike's criterion; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        sample_weight : array of shape (n_samples,) or None
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        float
        """
        return self._criterion(X, sample_weight, covariates, lambda n: 2.0)

    def bic(self, X: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """The Bayesian criterion; lower is better. Rows without an answer are not counted.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        sample_weight : array of shape (n_samples,) or None
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        float
        """
        return self._criterion(X, sample_weight, covariates, np.log)

    def _criterion(self, X: Any, sample_weight: Any, covariates: Any, per_parameter: Any) -> float:
        scores = self.score_samples(X, covariates)
        rows = read_answers(self, X, sample_weight, reset=False)
        weights = np.ones(len(scores)) if rows.weights is None else rows.weights
        answered = (rows.codes >= 0).any(axis=1)
        counted = weights > 0
        total = float(weights[counted] @ scores[counted])
        n_rows = max(float(weights[answered].sum()), 1.0)  # rows without an answer tell as much as one row
        return -2 * total + per_parameter(n_rows) * self.n_parameters_

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows of answers drawn from the fitted classes, and their classes.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the model, so that a call repeats itself.

        Returns
        -------
        tuple of arrays
            Answers (n_samples, n_items), and the classes (n_samples,).
        """
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), draws_of(self, random_state)
        labels = rng.choice(self.n_components_, size=n_samples, p=self.weights_)
        answers = [
            Categories(values).decoded(drawn_labels(probabilities.T[labels], rng))
            for values, probabilities in zip(self.categories_, self.components_, strict=True)
        ]
        kinds = {column.dtype.kind for column in answers}
        table = np.empty((n_samples, len(answers)), dtype=answers[0].dtype if len(kinds) == 1 else object)
        for place, column in enumerate(answers):
            table[:, place] = column
        return table, labels

    def standard_errors(self, X: Any, sample_weight: Any = None, covariates: Any = None) -> StandardErrors:
        """Standard errors of ``weights_`` and ``components_`` from the observed information (Louis 1982).

        Estimates on the border, probabilities of zero or one, are held there and have none (NaN), and so are parameters
        that the data do not determine. Those of a model with covariates need these.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        sample_weight : array of shape (n_samples,) or None
        covariates : array or DataFrame of shape (n_samples, n_covariates), or None

        Returns
        -------
        StandardErrors
        """
        answers, design = self._rows(X, sample_weight, covariates)
        priors = np.tile(self.weights_, (len(design), 1))
        if covariates is not None:
            priors = self.regression_.probabilities(covariates)
        fit = Fitted(answers, design, priors, np.concatenate(self.coefficients_), self._kernels(answers))
        return standard_errors(fit)[0]

    def first_step(self, X: Any, sample_weight: Any = None) -> FirstStep:
        """The posteriors of rows for `class_regression` and `distal_outcome`, with what errors of the fit do to them.

        The rows, and their weights, are those of the fit.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        FirstStep
        """
        check_is_fitted(self)
        if self.regression_ is not None:
            raise ValueError("The first of three steps has no covariates; fit the classes without them.")
        rows = read_answers(self, X, sample_weight, reset=False)
        answers, patterns = distinct_answers(rows.known, rows.sizes, rows.weights)
        priors = np.tile(self.weights_, (len(answers.counts), 1))
        design = np.ones((len(answers.counts), 1))
        fit = Fitted(answers, design, priors, np.concatenate(self.coefficients_), self._kernels(answers))
        return FirstStep(fit, patterns)

    def goodness_of_fit(self, X: Any, sample_weight: Any = None) -> GoodnessOfFit:
        """G², X² and their degrees of freedom, and the residuals of every pair of items.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        GoodnessOfFit
        """
        answers, _ = self._rows(X, sample_weight, None)
        return goodness_of_fit(answers, self.weights_, np.concatenate(self.components_))

    def bootstrap_test(
        self, X: Any, n_resamples: int = 99, sample_weight: Any = None, n_starts: int = 20, random_state: Any = None
    ) -> LikelihoodRatioTest:
        """Whether these classes fit better than one fewer: the likelihood ratio against that on rows drawn from those.

        McLachlan (1987). A small p-value speaks for the last class. Weights are taken for counts of rows, and rounded.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_items)
            The rows of the fit.
        n_resamples : int, default=99
        sample_weight : array of shape (n_samples,) or None
        n_starts : int, default=20
            Random starts on every resample.
        random_state : int, RandomState or None

        Returns
        -------
        LikelihoodRatioTest
        """
        n_resamples, n_starts = check_count("n_resamples", n_resamples), check_count("n_starts", n_starts)
        check_is_fitted(self)
        if self.n_components_ < 2:
            raise ValueError("One class has none fewer to be compared with; fit two or more.")
        if self.regression_ is not None:
            raise ValueError("bootstrap_test compares classes without covariates; fit them so.")
        answers, _ = self._rows(X, sample_weight, None)
        kernels, rng = self._kernels(answers), generator_of(random_state)
        own = ClassParameters(self.weights_[None], np.concatenate(self.coefficients_)[:, None])
        k = self.n_components_ - 1
        given = list(spectral_starts(answers, k, rng))
        fewer = search(answers, k, given, self.n_starts, rng, self.tol, self.max_iter, kernels)
        more = accelerated_em(answers, own, self.max_iter, self.tol, kernels)
        statistic = 2 * float(more.log_likelihood[0] - fewer.log_likelihood[0])
        null = np.empty(n_resamples)
        for i in range(n_resamples):
            drawn = _drawn(answers, fewer.parameters, kernels, rng)
            null[i] = _drawn_ratio(drawn, fewer.parameters, n_starts, self.max_iter, rng, kernels)
        pvalue = (1 + int(np.sum(null >= statistic))) / (1 + n_resamples)
        return LikelihoodRatioTest(statistic, pvalue, null, self.n_components_)

    def _rows(self, X: Any, sample_weight: Any, covariates: Any) -> tuple[Answers, np.ndarray]:
        """The answers of rows and their design: distinct answers and an intercept without covariates."""
        check_is_fitted(self)
        rows = read_answers(self, X, sample_weight, reset=False)
        if covariates is not None:
            counts = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
            return Answers(rows.known, counts, tuple(rows.sizes)), standardized(design_matrix(covariates)[0], counts)[0]
        answers, _ = distinct_answers(rows.known, rows.sizes, rows.weights)
        answers = answers.take(np.flatnonzero((answers.counts > 0) & (answers.codes >= 0).any(axis=1)))
        if not len(answers.counts):
            raise ValueError("No row of X has an answer that was seen in fitting, so nothing can be told from them.")
        return answers, np.ones((len(answers.counts), 1))

    def _kernels(self, answers: Answers) -> Kernels:
        return smoothing_kernels(self.smoothing, answers.sizes, self.ordered_)


def _drawn(answers: Answers, parameters: ClassParameters, kernels: Kernels, rng: np.random.Generator) -> Answers:
    """As many rows drawn from classes, with the same answers missing."""
    rows = np.repeat(np.arange(len(answers.counts)), np.round(answers.counts).astype(int))
    probabilities = np.split(smoothed(parameters.coefficients, kernels, answers)[:, 0], answers.starts[1:])
    labels = rng.choice(parameters.weights.shape[1], size=len(rows), p=parameters.weights[0])
    drawn = np.stack([drawn_labels(item.T[labels], rng) for item in probabilities], axis=1)
    codes = np.where(answers.codes[rows] >= 0, drawn, -1)
    return distinct_answers(codes, answers.sizes)[0]


def _drawn_ratio(
    answers: Answers,
    truth: ClassParameters,
    n_starts: int,
    max_iter: int,
    rng: np.random.Generator,
    kernels: Kernels,
) -> float:
    """Twice the gain of one class more, on rows drawn from ``truth``."""
    settings = rng, REFIT_TOL, max_iter, kernels
    fewer = search(answers, truth.weights.shape[1], [truth], n_starts, *settings)
    more = search(answers, truth.weights.shape[1] + 1, [], n_starts, *settings)
    return 2 * max(float(more.log_likelihood[0] - fewer.log_likelihood[0]), 0.0)
