"""Mixtures of products of distributions without a shape."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    Flag,
    Jobs,
    NoneOr,
    Numbers,
    Seed,
    Such,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews._progress import CallbackSupportMixin, Report, reporter, with_callbacks
from latentviews._sentences import warn_user
from latentviews._validation import all_or_nothing, check_one_batch, check_weights, is_auto, label_names
from latentviews.core.kernels.bandwidths import OF_DENSITIES
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.once import reading_once
from latentviews.core.tables import read_table
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.core.views import has_density, kernel_of
from latentviews.mixtures.cross_validation import likeliest_maps
from latentviews.mixtures.dependence.choosing import choose_way
from latentviews.mixtures.dependence.consensus import dependent_classes
from latentviews.mixtures.dependence.settings import is_dependence, read_copulas
from latentviews.mixtures.estimation import (
    FitPath,
    FoundClasses,
    SpectralSettings,
    Starts,
    class_starts,
    polished_classes,
    spectral_classes,
    spectral_summary,
)
from latentviews.mixtures.polish import Sieve
from latentviews.mixtures.problem import Estimate, PosteriorMixin, Problem, classes_of, warn_of_hidden
from latentviews.mixtures.questions import ViewQuestionsMixin
from latentviews.mixtures.reading import PILOT, by_likelihood, read_problem
from latentviews.mixtures.shares import class_shares
from latentviews.mixtures.streaming import StreamFit, start_stream
from latentviews.mixtures.without_density import coordinate_classes


class MultiViewMixture(CallbackSupportMixin, ViewQuestionsMixin, PosteriorMixin, BaseEstimator):
    r"""Hidden classes from three or more views that are independent given the class.

    .. math:: p(x_1, \ldots, x_\ell) = \sum_h \pi_h \prod_t p_t(x_t \mid h)

    The distributions p_t(· | h) have no assumed shape. They are found as kernel embeddings by the spectral algorithm
    of Song, Anandkumar, Dai & Xie (2014): second moments whiten, the third moment is an orthogonal tensor, and its
    eigenvectors are the classes. By default that is the start of a likelihood step (``polish``).

    Parameters
    ----------
    n_components : int or "auto", default=2
        The number of classes k; "auto" counts them by `rank_test`, then splits while held-out rows are likelier.
    views : list of lists of column indices or names, dict of them, or None
        The columns of every view; by default every column is a view. The keys of a dict name the views.
    exchangeable : bool or list of one block id per view, default=False
        Whether all views, or those of a block, have the same distribution in every class (repeated measurements).
    kernel : Kernel, list of one per view, or None
        Shorthand for features. None chooses by dtype: `Delta` for categories, flags and text, `Gaussian` for numbers.
        Its space is where values may lie: ``Gaussian(space=HalfLine())`` for durations, ``Interval(0, 1)`` for shares.
    features : transformer or list of one per view, or None
        The feature map, cloned for every view. Any scikit-learn transformer will do. For kernels it is one-hot for
        `Delta`, bins for a real column, landmarks for anything else.
    solver : solver, default=JointDiagonalization()
    bandwidth : float, rule, "likelihood" or None
        The bandwidth of the kernel in the moments; None leaves the kernel's own. "likelihood" is the papers' choice:
        of multiples of the kernel's own, the one with the highest log-likelihood of the spectral estimate in five-fold
        cross-validation. With ``polish=None`` that is their estimator as published.
    density_bandwidth : float, rule, None or "auto", default="auto"
        That of the densities; None takes that of the moments. With a polish, "auto" gives every view and class its own:
        a number for one real column, a kernel shaped like the class for several; angles have one per view. It mixes in
        shapes (normal, t, Laplace, box) of one real column where held-out rows ask for them; a number or a rule is of
        kernels alone. Without a polish it is "isj", or None with ``kernel``, ``features``, ``bandwidth="likelihood"``.
    polish : polish, None or "auto", default="auto"
        The likelihood step after the spectral start; "auto" is `Sieve()`, for kernels without density (`Precomputed`,
        `Linear`, a function) on coordinates of their feature vectors. None stops at the spectral estimate: the paper's
        own, where ``density_bandwidth`` is None.
    dependence : Copulas, "copula", "auto" or None, default=None
        What to do about views that depend on each other inside a class: None assumes that they do not, "copula" is
        `Copulas()`, which takes the place of the polish and finds classes of any shape in real columns. "auto" fits
        both, and takes what held-out rows and the stability of the partition speak for.
    point_masses : "auto", list of float or None, default="auto"
        Values that many rows of a single real column have exactly, such as zeros, and that its densities have as point
        masses. "auto" takes those of at least 5 % of the rows, and ten times as many as any value beside them, so that
        rounded values are none. Densities are with respect to Lebesgue measure plus counting measure at these values.
        With ``dependence`` every component is at them with a chance of its own, in views of several columns, too, whose
        own densities smooth them; where noise is a class they are smoothed as all others, which a warning says.
    reference : int or None
        The view whose coordinates the whitening uses; by default the best conditioned.
    pilot_size : int or None, default=20_000
        Rows for features, projections and polish before passes over all; None fits projections on all, one more pass.
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
    components_ : list of Embedding, BinnedEmbedding, WeightedSample or WithPointMasses, one per view
        The distribution of the view in every class.
    spectrum_ : array
        Singular values of the pair moment: a gap after the k-th speaks for k classes.
    raw_weights_ : array of shape (k,)
        The spectral estimate's λ⁻², which need not sum to one.
    residual_ : float
        The share of the whitened tensor that k classes do not explain.
    lower_bound_ : float
        The mean log-likelihood that the polish reached on the pilot's rows, where it ``converged_`` or not.
    converged_ : bool
    n_iter_, n_components_ : int
    start_objectives_ : dict
        What every start of the polish reached in its first steps, on ``trial_rows`` of the rows.
    start_agreements_ : dict
        Adjusted Rand index of every start's partition then with the best one's; empty without a polish of several.
    shares_ : array of shape (n_components,)
        How common the classes are among the rows of the fit by their posteriors, which is near ``weights_``.
    rank_test_ : RankTest
        Where ``n_components="auto"``: spectra of pairs of views, their null bands, and the count.
    agreement_ : float
        With ``dependence``: the mean adjusted Rand index with other starts' partitions; where rows are few, with those
        as likely for held-out rows. Below 0.5 a warning is given.
    dependence_choice_ : DependenceChoice
        Where ``dependence="auto"``: what was taken, by which numbers, and a sentence with them.
    dependent_ : DependentClasses or None
        With ``dependence``: the joint distribution of all columns in every class.
    views_ : tuple of lists of column indices
    kernels_ : list of Kernel, one per view
        As given, or as chosen by the dtypes of the columns.
    class_names_ : array of shape (k,)
        Where ``y`` names classes: what class h is called.
    polished_ : Polished or None, the fitted sieve
    stream_ : StreamFit, what ``partial_fit`` keeps of a stream
    categories_ : dict
        Of columns whose categories are no numbers: their values, in the order of the codes that stand for them.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(5000, 3, design="gamma", random_state=0)
    >>> model = MultiViewMixture(3, random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.5 , 0.33, 0.17])
    """

    _kernels_by_dtype = True
    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": AutoOr(Count()),
        "views": WithData(),
        "exchangeable": WithData(),
        "kernel": WithData(),
        "features": WithData(),
        "solver": NoneOr(Ability("decompose")),
        "bandwidth": WithData(),
        "density_bandwidth": OF_DENSITIES,
        "polish": NoneOr(AutoOr(Ability("polish"))),
        "dependence": Such(is_dependence, 'None, "copula", "auto" or Copulas(...)'),
        "point_masses": NoneOr(AutoOr(Numbers())),
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
        views: Sequence[Any] | Mapping[str, Any] | None = None,
        exchangeable: bool | Sequence[Any] = False,
        kernel: Kernel | Sequence[Kernel] | None = None,
        features: Any = None,
        solver: Solver | None = None,
        bandwidth: Any = None,
        density_bandwidth: Any = "auto",
        polish: Any = "auto",
        dependence: Any = None,
        point_masses: Any = "auto",
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
        self.point_masses = point_masses
        self.reference = reference
        self.pilot_size = pilot_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    @reading_once
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the classes behind the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), list of 2-D arrays, one per view, iterable, path, Dask
            Numbers, or categories where a kernel is `Delta`; NaN is missing. An iterable of batches and a file (a path
            or `io.open_table`) are read repeatedly; chunks of a Dask collection stay where they are.
        y : array of shape (n_samples,) or None
            Known classes 0, …, k-1, or names, and -1, None, NaN or "" where unknown; not used, with a warning, if none
            is unknown. They name the classes (``class_names_``), and guide the polish.
        sample_weight : array of shape (n_samples,) or None
            As if rows were repeated, but for rules for bandwidths, which count every row once.

        Returns
        -------
        self
        """
        check_parameters(self)
        report, finish = reporter(self, self.verbose)
        for name in ("rank_test_", "stream_", "dependence_choice_", "shares_", "class_names_"):  # an earlier fit's
            self.__dict__.pop(name, None)
        problem = (self._fit_either if is_auto(self.dependence) else self._fit_rows)(X, y, sample_weight, report)
        if all(view.domain is not None and view.smooths for view in self.components_):  # others have no densities
            warn_of_hidden(self.weights_, classes_of(self).log_joint, problem.pilot)
            self.shares_: np.ndarray = class_shares(classes_of(self), problem)
        self._name_classes(y)
        finish()
        return self

    def _name_classes(self, y: Any) -> None:
        """Names for all classes, where ``y`` names some."""
        if (names := label_names(y)) is not None:
            more = [f"class {h}" for h in range(len(names), self.n_components_)]
            self.class_names_: np.ndarray = np.array([*names, *more], dtype=object)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, report: Report) -> Problem:
        """Read, check and fit the rows by one way."""
        problem = read_problem(self, X, y, sample_weight)
        self._keep(self._fit(problem, report), problem)
        return problem

    def _fit_either(self, X: Any, y: Any, sample_weight: Any, report: Report) -> Problem:
        """Independent views or copulas, whichever held-out rows and the stability of the classes speak for."""

        def fit(model: Any, rows: Any, labels: Any, weights: Any) -> Problem:
            return model._fit_rows(rows, labels, weights, report)

        way, choice = choose_way(self, fit, X, y, sample_weight)
        self.__dict__ = {**vars(way.model), "dependence": self.dependence, "dependence_choice_": choice}
        for one in way.told:
            warn_user(str(one.message), one.category)
        return way.problem

    @property
    def _fewest_views(self) -> int:
        """Three views that are independent inside classes determine them; copulas look at the density of all."""
        return 3 if self.dependence is None else 2

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
        rows. The polish and ``dependence`` would need rows again, so this is the spectral estimate. Bandwidths, point
        masses and the range of the densities are read off the first batch: give it some thousand rows. Densities of
        views of several columns stand on at most 200 rows of it as landmarks, or on none with
        ``features=FourierFeatures(...)`` and ``density_bandwidth=None``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), or list of 2-D arrays, one per view
        y : ignored
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        check_parameters(self)
        if by_likelihood(self):
            raise ValueError(
                'bandwidth="likelihood" judges by held-out rows, and partial_fit keeps no rows to hold out; give a '
                "number or a rule."
            )
        check_one_batch(X)
        self.__dict__.pop("shares_", None)  # of rows that are not kept
        if not hasattr(self, "stream_"):
            problem = read_problem(self, X, None, sample_weight)
            self._keep_read(problem)
            size = PILOT if self.pilot_size is None else self.pilot_size
            self.stream_: StreamFit = start_stream(problem, self._spectral_bandwidth(), size)
        rows = to_numpy(read_table(self, X, reset=False)[0])
        self.stream_ = self.stream_.add(rows, check_weights(sample_weight, rows), self.reference)
        found = self.stream_.solve(self._settings().solver, np.random.default_rng(self.random_state))
        self._keep_found(FoundClasses(self.stream_.estimate(found), FitPath(spectral_summary(found))))
        self._reorder(np.argsort(-self.weights_, kind="stable"))
        return self

    def _settings(self) -> SpectralSettings:
        solver = JointDiagonalization() if self.solver is None else self.solver
        return SpectralSettings(solver, self.reference, self.pilot_size is None)

    def _spectral_bandwidth(self) -> Any:
        """The bandwidth of densities that no polish follows."""
        if is_auto(self.density_bandwidth):
            return "isj" if self.kernel is None and self.features is None and not by_likelihood(self) else None
        return self.density_bandwidth

    def _fit(self, problem: Problem, report: Report) -> FoundClasses:
        """The classes by the way that the parameters ask for."""
        settings, polish = self._settings(), self.polish
        if self.dependence is not None:
            copulas = read_copulas(self.dependence)
            return dependent_classes(problem, copulas, settings, is_auto(self.n_components), self.n_jobs, report)
        if is_auto(polish) and not all(has_density(phi) for phi in problem.prototypes):
            return coordinate_classes(problem, settings, self.n_jobs, report)
        polish = Sieve() if is_auto(polish) else polish
        if by_likelihood(self):
            problem = replace(problem, prototypes=likeliest_maps(problem, settings, self._spectral_bandwidth()))
        if polish is None:
            return spectral_classes(problem, settings, self._spectral_bandwidth())
        guesses = self._warm_starts(problem) or class_starts(problem, settings)
        return polished_classes(problem, guesses, polish, self.density_bandwidth, self.n_jobs, report)

    def _warm_starts(self, problem: Problem) -> Starts | None:
        """The answer of an earlier fit to the same views and classes, where that is to be the start."""
        same = getattr(self, "views_", None) == problem.columns and getattr(self, "n_components_", None) == problem.rank
        return Starts({"warm": classes_of(self).posteriors(problem.pilot)}) if self.warm_start and same else None

    def _keep(self, found: FoundClasses, problem: Problem) -> None:
        """All of a fit; labels name the classes, and without them the commonest comes first."""
        self._keep_read(problem)
        self._keep_found(found)
        if problem.allowed is None:
            self._reorder(np.argsort(-self.weights_, kind="stable"))

    def _keep_read(self, problem: Problem) -> None:
        self.views_, self.n_components_ = problem.columns, problem.rank
        self.kernels_ = [kernel_of(phi) for phi in problem.prototypes]
        if problem.rank_test is not None:
            self.rank_test_ = problem.rank_test

    def _keep_found(self, found: FoundClasses) -> None:
        self.weights_, self.components_, _, self.polished_ = found.estimate
        self.dependent_, self.agreement_, self.n_components_ = found.dependent, found.agreement, len(self.weights_)
        spectral, self.lower_bound_, self.n_iter_, self.converged_, objectives, agreements = found.path
        self.start_objectives_, self.start_agreements_ = objectives or {}, agreements or {}
        if spectral is not None:
            self.spectrum_, self.raw_weights_, self.residual_ = spectral

    def _reorder(self, order: np.ndarray) -> None:
        """The classes in another order."""
        own = Estimate(self.weights_, self.components_, self.views_, self.polished_)
        self.weights_, self.components_, _, self.polished_ = own.take(order)
        self.dependent_ = self.dependent_ and self.dependent_.take(order)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
