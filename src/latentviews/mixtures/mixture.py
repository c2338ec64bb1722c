"""Mixtures of products of distributions without a shape."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Ability,
    AutoOr,
    Bandwidth,
    Constraint,
    Count,
    Flag,
    Jobs,
    NoneOr,
    Seed,
    Such,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews._progress import CallbackSupportMixin, Report, reporter, with_callbacks
from latentviews._validation import (
    all_or_nothing,
    allowed_classes,
    as_labels,
    check_count,
    check_one_batch,
    check_weights,
    is_auto,
)
from latentviews.core import streams
from latentviews.core.embeddings import Components, evaluate
from latentviews.core.kernels.base import Kernel
from latentviews.core.selection import dependence_rank
from latentviews.core.spectral import SpectralFit
from latentviews.core.tables import check_angles, check_varying, read_table
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.core.views import feature_prototypes, fit_views, for_scales, has_density, read_blocks
from latentviews.mixtures.dependence.classes import DependentClasses, DependentConditional
from latentviews.mixtures.dependence.portfolio import check_dependence, is_dependence, portfolio, read_copulas
from latentviews.mixtures.estimation import (
    SpectralSettings,
    polished_estimate,
    spectral_estimate,
    spectral_steps,
    starts,
)
from latentviews.mixtures.inference import (
    Bootstrap,
    Conditional,
    Expectation,
    expectation,
    matching_order,
    resample,
    resample_dependent,
    signed_weights,
)
from latentviews.mixtures.polish import Polished, Sieve
from latentviews.mixtures.problem import Estimate, PosteriorMixin, Problem, warn_of_hidden
from latentviews.mixtures.streaming import StreamFit, start_stream

PILOT = 20_000


class MultiViewMixture(CallbackSupportMixin, PosteriorMixin, BaseEstimator):
    r"""Hidden classes from three or more views that are independent given the class.

    .. math:: p(x_1, \ldots, x_\ell) = \sum_h \pi_h \prod_t p_t(x_t \mid h)

    The distributions p_t(·|h) have no assumed shape. They are found as kernel embeddings by the spectral algorithm
    of Song, Anandkumar, Dai & Xie (2014): second moments whiten, the third moment is an orthogonal tensor, and its
    eigenvectors are the classes. By default that is the start of a likelihood step (``polish``).

    Parameters
    ----------
    n_components : int or "auto", default=2
        The number of classes k; "auto" counts them by `rank_test`.
    views : list of lists of column indices or names, or None
        The columns of every view; by default every column is a view.
    exchangeable : bool or list of one block id a view, default=False
        Whether all views, or those of a block, have the same distribution in every class (repeated measurements).
    kernel : Kernel or list of one a view, default=Gaussian("silverman")
        Shorthand for features: one-hot for `Delta`, bins for a real column, landmarks for anything else.
    features : transformer or list of one a view, or None
        The feature map, cloned for every view. Any scikit-learn transformer will do.
    solver : solver, default=JointDiagonalization()
    bandwidth : float, rule or None
        The bandwidth of the kernel in the moments; None leaves the kernel's own.
    density_bandwidth : float, rule, None or "auto", default="auto"
        The bandwidth of the densities; None takes that of the moments. With a polish, "auto" gives every view and
        class its own: a number for one real column, a kernel shaped like the class for several; angles have one a view.
        Without, it is "isj", or None where ``kernel`` or ``features`` are given.
    polish : polish, None or "auto", default="auto"
        The likelihood step after the spectral start; "auto" is `Sieve()`. None stops at the spectral estimate: the
        paper's own, where ``density_bandwidth`` is None.
    dependence : Copulas, "copula" or None, default=None
        What to do about views that depend on each other inside a class: None assumes that they do not, "copula" is
        `Copulas()`, which takes the place of the polish and finds classes of any shape in real columns.
    reference : int or None
        The view whose coordinates the whitening uses; by default the best conditioned.
    pilot_size : int or None, default=20_000
        Rows on which features, projections and the polish are fitted before passes over all rows; None fits
        projections on all rows, one more pass.
    warm_start : bool, default=False
        Whether the polish of a second ``fit`` starts from the first one's answer alone.
    n_jobs : int or None, default=None
        Threads in which the starts are tried.
    verbose : int, default=0
        Whether to write the steps of the fit to standard error. Callbacks of scikit-learn 1.9 on are told in any case.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,)
        How common the classes are, decreasing, summing to one.
    components_ : list of Embedding, BinnedEmbedding or WeightedSample, one a view
        The distribution of the view in every class.
    spectrum_ : array
        Singular values of the pair moment: a gap after the k-th speaks for k classes.
    raw_weights_ : array of shape (k,)
        The spectral estimate's λ⁻², which need not sum to one.
    residual_ : float
        The share of the whitened tensor that k classes do not explain.
    lower_bound_ : float
        The mean log-likelihood that the polish reached.
    converged_ : bool
    n_iter_ : int
    start_objectives_ : dict
        What every start of the polish reached; agreement is a good sign.
    rank_test_ : RankTest
        Where ``n_components="auto"``: the spectra of all pairs of views, their null bands, and the count.
    agreement_ : float
        With ``dependence``: how well the partition found agrees with those of other starts, as a mean adjusted Rand
        index. Above 0.9 is good; below 0.5 a warning is given.
    dependent_ : DependentClasses or None
        With ``dependence``: the joint distribution of all columns in every class.
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(5000, 3, design="gamma", random_state=0)
    >>> model = MultiViewMixture(3, random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.5 , 0.33, 0.17])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": AutoOr(Count()),
        "views": WithData(),
        "exchangeable": WithData(),
        "kernel": WithData(),
        "features": WithData(),
        "solver": NoneOr(Ability("decompose")),
        "bandwidth": WithData(),
        "density_bandwidth": NoneOr(Bandwidth()),
        "polish": NoneOr(AutoOr(Ability("polish"))),
        "dependence": Such(is_dependence, 'None, "copula" or Copulas(...)'),
        "reference": WithData(),
        "pilot_size": NoneOr(Count()),
        "warm_start": Flag(),
        "n_jobs": Jobs(),
        "verbose": Verbosity(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        views: Sequence[Any] | None = None,
        exchangeable: bool | Sequence[Any] = False,
        kernel: Kernel | Sequence[Kernel] | None = None,
        features: Any = None,
        solver: Solver | None = None,
        bandwidth: Any = None,
        density_bandwidth: Any = "auto",
        polish: Any = "auto",
        dependence: Any = None,
        reference: int | None = None,
        pilot_size: int | None = PILOT,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.exchangeable = exchangeable
        self.kernel = kernel
        self.features = features
        self.solver = solver
        self.bandwidth = bandwidth
        self.density_bandwidth = density_bandwidth
        self.polish = polish
        self.dependence = dependence
        self.reference = reference
        self.pilot_size = pilot_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the classes behind the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), list of 2-D arrays, one a view, or iterable
            Numbers, NaN where a value is missing. An iterable yields batches and can be read more than once.
        y : array of shape (n_samples,) or None
            Known classes 0, …, k-1, and -1 where unknown; ignored if no value is -1. They name the classes, and guide
            the polish.
        sample_weight : array of shape (n_samples,) or None
            As if rows were repeated, but for rules for bandwidths, which count every row once.
        """
        check_parameters(self)
        report, finish = reporter(self, self.verbose)
        for name in ("rank_test_", "stream_"):  # an earlier fit's
            self.__dict__.pop(name, None)
        problem = self._read(X, y, sample_weight)
        check_angles(problem.pilot, problem.columns, problem.prototypes, getattr(self, "feature_names_in_", None))
        fitted = self._fit(problem, report)
        self.views_ = problem.columns
        self.n_components_ = len(fitted.weights)
        order = np.arange(self.n_components_)
        if problem.allowed is None:  # labels name the classes; without them the commonest comes first
            order = np.argsort(-fitted.weights, kind="stable")
        self._set_classes(fitted, order)
        if all(view.domain is not None and view.smooths for view in self.components_):  # others have no densities
            warn_of_hidden(self.weights_, self._estimate().log_joint(problem.pilot))
        finish()
        return self

    def _can_stream(self) -> bool:
        if self.dependence is not None:
            raise AttributeError(
                "partial_fit takes views as independent inside classes: set dependence=None, or use fit."
            )
        return True

    @available_if(_can_stream)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One batch of a stream that is seen once: classes of all rows so far, none of which is kept.

        The projections are learnt by doubly stochastic steps (`latentviews.stochastic`) from the first ``pilot_size``
        rows. The polish and ``dependence`` would need rows again, so this is the spectral estimate. Bandwidths and the
        range of the densities are read off the first batch: give it some thousand rows. Densities of views of several
        columns stand on at most 200 rows of it as landmarks, or on none with ``features=FourierFeatures(...)`` and
        ``density_bandwidth=None``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), or list of 2-D arrays, one a view
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        check_parameters(self)
        check_one_batch(X)
        settings = self._settings()
        if not hasattr(self, "stream_"):
            problem = self._read(X, None, sample_weight)
            names = getattr(self, "feature_names_in_", None)
            check_angles(problem.pilot, problem.columns, problem.prototypes, names)
            self.views_, self.n_components_ = problem.columns, problem.rank
            size = PILOT if self.pilot_size is None else self.pilot_size
            self.stream_: StreamFit = start_stream(problem, self._spectral_bandwidth(), size)
        rows = to_numpy(read_table(self, X, reset=False)[0])
        self.polished_: Polished | None = None
        self.dependent_: DependentClasses | None = None
        self.stream_ = self.stream_.add(rows, check_weights(sample_weight, rows), self.reference)
        found = self.stream_.solve(settings.solver, np.random.default_rng(self.random_state))
        estimate = self.stream_.estimate(found)
        self.lower_bound_ = np.nan
        self.start_objectives_: dict[str, float] = {}
        self._keep_spectral(found, found.whitening.spectrum, self.n_components_)
        self.converged_, self.n_iter_ = True, 0
        self._set_classes(estimate, np.argsort(-estimate.weights, kind="stable"))
        return self

    def _settings(self) -> SpectralSettings:
        solver = JointDiagonalization() if self.solver is None else self.solver
        return SpectralSettings(solver, self.reference, self.pilot_size is None)

    def _spectral_bandwidth(self) -> Any:
        """The bandwidth of densities that no polish follows."""
        if is_auto(self.density_bandwidth):
            return "isj" if self.kernel is None and self.features is None else None
        return self.density_bandwidth

    def _fit(self, problem: Problem, report: Report) -> Estimate:
        """The estimate, and what is worth keeping of the way to it."""
        settings, polish = self._settings(), self.polish
        if is_auto(polish):
            polish = Sieve() if all(has_density(phi) for phi in problem.prototypes) else None
        self.polished_ = None
        self.dependent_ = None
        self.lower_bound_, self.start_objectives_, self.agreement_ = np.nan, {}, np.nan
        if self.dependence is not None:
            return self._fit_dependent(problem, settings, report)
        if polish is None:
            spectral = spectral_steps(problem, settings, problem.prototypes, self._spectral_bandwidth(), all_rows=True)
            self._keep_spectral(spectral.fit, spectral.fit.whitening.spectrum, problem.rank)
            self.converged_, self.n_iter_ = True, 0
            estimate = spectral_estimate(problem, spectral)
            return estimate.take(problem.name_classes(estimate.posteriors))
        same = getattr(self, "views_", None) == problem.columns and getattr(self, "n_components_", None) == problem.rank
        if self.warm_start and same:
            guesses = {"warm": self._estimate().posteriors(problem.pilot)}
        else:
            guesses, first, spectrum = starts(problem, settings)
            self._keep_spectral(None if first is None else first.fit, spectrum, problem.rank)
        estimate, self.polished_ = polished_estimate(
            problem, list(guesses.values()), polish, self.density_bandwidth, self.n_jobs, report
        )
        self.lower_bound_, self.n_iter_, self.converged_ = self.polished_.fit[1:]
        self.start_objectives_ = dict(zip(guesses, self.polished_.objectives.tolist(), strict=True))
        return estimate

    def _fit_dependent(self, problem: Problem, settings: SpectralSettings, report: Report) -> Estimate:
        """The fit for views that depend on each other inside classes."""
        n_classes = None if self._counts() else problem.rank
        found = portfolio(problem, read_copulas(self.dependence), settings, n_classes, self.n_jobs, report)
        self.dependent_, self.agreement_, self.start_objectives_ = found.classes, found.agreement, found.objectives
        self.lower_bound_, self.n_iter_, self.converged_ = found.objectives[found.start], found.n_iter, found.converged
        self._keep_spectral(None, found.spectrum, found.classes.n_classes)
        return Estimate(found.classes.weights, list(found.components), problem.columns)

    def _keep_spectral(self, found: SpectralFit | None, spectrum: Any, rank: int) -> None:
        self.spectrum_ = spectrum
        self.raw_weights_ = np.full(rank, np.nan) if found is None else found.weights
        self.residual_ = np.nan if found is None else found.decomposition.residual

    def _set_classes(self, estimate: Estimate, order: np.ndarray) -> None:
        """Weights and components with the classes in this order."""
        self.weights_, self.components_, _ = estimate.take(order)
        if self.polished_ is not None:
            self.polished_ = self.polished_.take(order)
        if self.dependent_ is not None:
            self.dependent_ = self.dependent_.take(order)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row; -1 where it is noise, and ``dependence`` makes noise a class."""
        labels = super().predict(X)
        return np.where(labels < self.n_components_, labels, -1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k); what is left to one is that of noise."""
        return super().predict_proba(X)[:, : self.n_components_]

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the fitted mixture, and their classes; columns in no view are NaN."""
        check_is_fitted(self)
        if self.dependent_ is None:
            return super().sample(n_samples)
        rng = np.random.default_rng(self.random_state)
        return self.dependent_.sample(check_count("n_samples", n_samples), self.n_features_in_, rng)

    def _n_parameters(self) -> float:
        return super()._n_parameters() if self.dependent_ is None else self.dependent_.n_parameters

    def expectation(
        self, f: Callable[[np.ndarray], Any], X: Any, view: int = 0, sample_weight: Any = None
    ) -> Expectation:
        """E[f(x_t) | h] for every class, with standard errors, by signed weights from the other views.

        Any function on rows (n, d_t) will do, in no RKHS and with no smoothing: the other views say how much each row
        counts for each class. ``components_[view].expectation(f)`` is the smoothed counterpart without data.
        After a fit with ``dependence`` all views say so, since the others alone would be misled.
        """
        table, columns = self._table(X), self._view_columns(view)
        weights = check_weights(sample_weight, table)
        weights = np.ones(len(table)) if weights is None else weights
        present = ~np.isnan(table[:, columns]).any(axis=1)
        table, weights = table[present], weights[present]
        values, posteriors = evaluate(f, table[:, columns]), self._posteriors(table)
        if self.dependent_ is not None:
            return expectation(values, posteriors * weights[:, None])
        return expectation(values, signed_weights(posteriors, self._posteriors(table, without=view), weights))

    def conditional(self, X: Any, view: int) -> Conditional | DependentConditional:
        """The distribution of one view given the others, for every row: mean, density and draws."""
        if self.dependent_ is not None:
            return self.dependent_.conditional(self._table(X), self._view_index(view))
        return Conditional(self._posteriors(self._table(X), without=view), self.components_[self._view_index(view)])

    def bootstrap(
        self,
        X: Any,
        n_resamples: int = 200,
        f: Callable[[np.ndarray], Any] | None = None,
        view: int = 0,
        random_state: Any = None,
        sample_weight: Any = None,
    ) -> Bootstrap:
        """Refits to resampled rows: intervals for the weights, and for E[f(x_t) | h] if ``f`` is given.

        Every refit starts at this one, so classes keep their names. It needs a polished fit.
        """
        table, rng = self._table(X), np.random.default_rng(random_state)
        n_resamples, weights = check_count("n_resamples", n_resamples, 2), check_weights(sample_weight, table)
        if self.dependent_ is not None:
            return resample_dependent(self.dependent_, table, f, self._view_index(view), n_resamples, rng, weights)
        if self.polished_ is None:
            raise ValueError(
                "bootstrap refits the polish, and this model was fitted with polish=None; fit it with one."
            )
        return resample(self.polished_, table, f, self._view_index(view), n_resamples, rng, weights)

    def align_to(self, reference: "MultiViewMixture") -> Self:
        """Rename the classes so that they follow those of another fit, and return this one."""
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
        found = Estimate(self.weights_, self.components_, self.views_)
        self._set_classes(found, matching_order(self.components_, reference.components_))
        return self

    def _table(self, X: Any) -> np.ndarray:
        """All rows in memory."""
        check_is_fitted(self)
        data, _ = read_table(self, X, reset=False)
        return np.concatenate([to_numpy(batch) for batch, _ in streams.batches(data)])

    def _view_index(self, view: int) -> int:
        if not _is_view(view, len(self.views_)):
            raise ValueError(f"view must be a number from 0 to {len(self.views_) - 1}; got {view!r}.")
        return int(view)

    def _view_columns(self, view: int) -> list[int]:
        return self.views_[self._view_index(view)]

    def _estimate(self) -> "Estimate | DependentClasses":
        """What judges a row."""
        return self.dependent_ or Estimate(self.weights_, self.components_, self.views_)

    def _posteriors(self, table: np.ndarray, without: int | None = None) -> np.ndarray:
        """P(h | the row's views), one of them left out if it is named."""
        if without is not None:
            table = table.copy()
            table[:, self._view_columns(without)] = np.nan
        return self._estimate().posteriors(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        data, _ = read_table(self, X, reset=False)
        estimate = self._estimate()
        return np.concatenate([estimate.log_joint(batch) for batch, _ in streams.batches(data)])

    def _counts(self) -> bool:
        """Whether the number of classes is to be found."""
        return is_auto(self.n_components)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Data, views and a pilot, or a sentence on what no fit can answer."""
        automatic = self._counts()
        rank = 1 if automatic else int(self.n_components)
        rng = np.random.default_rng(self.random_state)
        data, columns = read_table(self, X, reset=True)
        weights = check_weights(sample_weight, data)
        weights = None if weights is None else weights / weights.mean()  # sums then count rows, whatever the unit
        size = PILOT if self.pilot_size is None else self.pilot_size
        labels = as_labels(y, data)
        bits: Any = rng.bit_generator
        apart = np.random.Generator(bits.jumped())  # so that rng goes on the same for arrays and streams
        pilot, pilot_weights, pilot_labels = streams.sample(data, size, apart, weights, labels)
        pilot = to_numpy(pilot)
        n_rows = len(pilot) if pilot_weights is None else int(np.count_nonzero(pilot_weights))
        if n_rows < max(rank, 2):
            raise ValueError(f"{rank} component(s) need at least {max(rank, 2)} rows; got n_samples = {n_rows}.")
        check_varying(data if streams.is_array(data) else pilot, columns, getattr(self, "feature_names_in_", None))
        if self.reference is not None and not _is_view(self.reference, len(columns)):
            raise ValueError(f"reference must be a view from 0 to {len(columns) - 1}; got {self.reference!r}.")
        blocks = read_blocks(self.exchangeable, len(columns))
        prototypes = feature_prototypes(self.kernel, self.features, self.bandwidth, columns)
        if self.kernel is None and self.features is None and self.bandwidth is None and self.dependence is None:
            prototypes = for_scales(prototypes, to_numpy(pilot), columns, blocks)
        if self.dependence is not None:
            check_dependence(self, blocks, prototypes)
            if labels is not None and automatic:
                raise ValueError('Known classes in y need their number: give n_components instead of "auto".')
        elif automatic:
            fair = slice(None)  # rows kept with their weights as chances are a sample of the weighted population
            if pilot_weights is not None:
                fair = rng.random(len(pilot)) * pilot_weights.max() < pilot_weights
            views = fit_views(pilot[fair], columns, prototypes, rng, blocks)
            self.rank_test_ = dependence_rank(pilot[fair], views, rng)
            rank = self.rank_test_.n_components
        allowed = None if pilot_labels is None else allowed_classes(pilot_labels, rank)
        rows = data.shape[0] if streams.is_array(data) else np.inf  # a pilot that is not full holds the whole stream
        partial = size <= len(pilot) < rows
        return Problem(
            data, weights, columns, blocks, prototypes, pilot, pilot_weights, partial, labels, allowed, rank, rng
        )


def _is_view(value: Any, n_views: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value in range(n_views)
