"""Hidden Markov models whose emissions have no assumed shape."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    Jobs,
    NoneOr,
    Numbers,
    Seed,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews._progress import CallbackSupportMixin, Report, reporter, with_callbacks
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, all_or_nothing, check_one_batch, is_auto
from latentviews.core.kernels.bandwidths import OF_DENSITIES
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.once import reading_once
from latentviews.core.tables import read_sequences
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.core.views import kernel_of
from latentviews.mixtures.estimation import FitPath, SpectralSettings, spectral_summary
from latentviews.mixtures.polish import Sieve
from latentviews.sequences.answers import ChainAnswersMixin
from latentviews.sequences.estimation import (
    FoundChain,
    SequenceProblem,
    chain_starts,
    found_by_moments,
    polished_chain,
    state_counts,
)
from latentviews.sequences.independence import looks_independent
from latentviews.sequences.questions import ChainQuestionsMixin
from latentviews.sequences.reading import PILOT, read_sequence_problem
from latentviews.sequences.streaming import ChainStream, start_chain_stream
from latentviews.sequences.stretches import check_lengths

RARE = 1.0  # rows: a state that is expected in fewer is not there
FORGETFUL = 0.05  # the least singular value of a transition matrix that keeps its states apart
TRIAL_ROWS = 3000  # on which starts and widths are compared: every trial of a chain takes longer than of a mixture


class KernelHMM(CallbackSupportMixin, ChainQuestionsMixin, ChainAnswersMixin, BaseEstimator):
    r"""A hidden Markov model whose emissions have no assumed shape.

    .. math:: p(x_1, \ldots, x_n) = \sum_{h_1, \ldots, h_n} \pi_{h_1} \prod_t A_{h_t h_{t+1}} \prod_t p(x_t \mid h_t)

    Three consecutive rows are three views that are independent given the middle state, so emissions and transitions
    come from the moments of triples (Song, Anandkumar, Dai & Xie 2014, section 4), whether or not the chain is
    stationary. By default that starts Baum–Welch with nonparametric emissions (``polish``). ``partial_fit`` learns from
    a stream that is seen once.

    Parameters
    ----------
    n_states : int or "auto", default=2
        The number of states k; "auto" counts them by the rank of the dependence between consecutive rows.
    views : list of lists of column indices or names, or None
        Sensors that are independent given the state, by their columns; by default all columns are one sensor, whose
        columns may depend on each other in any way.
    kernel : Kernel, list of one per view, or None
        What emissions are like: `Gaussian` for numbers, `VonMises` for angles, `Delta` for categories. None chooses by
        dtype: `Delta` for categories, flags and text, ``Gaussian`` for numbers; see ``kernels_``.
        ``Gaussian(space=HalfLine())`` is for numbers from zero on, ``Interval(0, 1)`` for shares.
    features : transformer or list of one per view, or None
        The feature map, in place of ``kernel``.
    solver : solver, default=JointDiagonalization()
    bandwidth : float, rule or None
        The bandwidth of the kernel in the moments; None leaves the kernel's own.
    density_bandwidth : float, rule, None or "auto", default="auto"
        The bandwidth of the emissions; "auto" gives every state the one, and in several columns the stack of kernels
        and Gaussians, that held-out stretches prefer.
    polish : Sieve, None or "auto", default="auto"
        How Baum–Welch is run; "auto" is `Sieve` with starts and widths compared on 3,000 rows, None stops at the
        spectral estimate.
    point_masses : "auto", list of float or None, default="auto"
        Values that many rows of a sensor of one real column have exactly, such as dry days, and that its emissions have
        as point masses. "auto" takes those of at least 5 % of the rows, and ten times as many as any value beside them.
        Densities are with respect to Lebesgue measure plus counting measure at these values.
    pilot_size : int, default=20_000
        Rows, in stretches, to which Baum–Welch is fitted before steps over all rows.
    n_jobs : int or None, default=None
        Threads in which the starts are tried.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    start_ : array of shape (k,)
        The probability of every state at the first row of a sequence; sequences seen count beside one more that
        starts from the stationary law.
    transition_ : array of shape (k, k)
        P(next state | state), one row per state.
    components_ : list of Embedding, BinnedEmbedding, WeightedSample or WithPointMasses, one per view
        The emissions of every state.
    weights_ : array of shape (k,)
        The share of the rows in every state, decreasing.
    spectrum_ : array or None
        Singular values of the pair moment of rows two steps apart.
    residual_ : float or None
        The share of the whitened tensor that k states do not explain.
    lower_bound_ : float
        The mean log-likelihood per row that Baum–Welch reached.
    start_objectives_ : dict
        What every start of Baum–Welch reached in its first steps, on 3,000 of the rows.
    start_agreements_ : dict
        How well every start's states of those rows agree with those of the best, as an adjusted Rand index: low where
        other states explain the rows as well.
    rank_test_ : RankTest
        Where ``n_states="auto"``.
    converged_ : bool
        Whether Baum–Welch did, on the rows of the pilot; the two steps over all of more rows are not asked.
    n_iter_ : int
        Steps on the pilot's rows.
    n_states_ : int
    views_ : tuple of lists of column indices
    kernels_ : list of Kernel, one per view
        As given, or as chosen by the dtypes of the columns.
    categories_ : dict
        Of columns whose categories are no numbers: their values, in the order of the codes that stand for them.
    stream_ : ChainStream
        After ``partial_fit``: what is kept of the stream.

    Examples
    --------
    >>> from latentviews import KernelHMM
    >>> from latentviews.datasets import make_hmm
    >>> X, states, truth = make_hmm(4000, random_state=0)
    >>> model = KernelHMM(3, random_state=0).fit(X)
    >>> model.transition_.diagonal().round(1)
    array([0.9, 0.9, 0.9])
    >>> model.forecast(X, horizon=5).mean().shape
    (5, 1)
    """

    _kernels_by_dtype = True
    _columns_are_one_view = True
    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_states": AutoOr(Count()),
        "views": WithData(),
        "kernel": WithData(),
        "features": WithData(),
        "solver": NoneOr(Ability("decompose")),
        "bandwidth": WithData(),
        "density_bandwidth": OF_DENSITIES,
        "polish": WithData(),
        "point_masses": NoneOr(AutoOr(Numbers())),
        "pilot_size": Count(3),
        "n_jobs": Jobs(),
        "verbose": Verbosity(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_states: int | str = 2,
        *,
        views: Sequence[Any] | None = None,
        kernel: Kernel | Sequence[Kernel] | None = None,
        features: Any = None,
        solver: Solver | None = None,
        bandwidth: Any = None,
        density_bandwidth: Any = "auto",
        polish: Any = "auto",
        point_masses: Any = "auto",
        pilot_size: int = PILOT,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_states = n_states
        self.views = views
        self.kernel = kernel
        self.features = features
        self.solver = solver
        self.bandwidth = bandwidth
        self.density_bandwidth = density_bandwidth
        self.polish = polish
        self.point_masses = point_masses
        self.pilot_size = pilot_size
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    @reading_once
    def fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Self:
        """Find the states behind sequences of rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), path of a file, or Dask collection
            Sequences one under the other. NaN where a value is missing: a row without any is passed over in time.
            Files are read into memory; chunks of Dask stay where they are, and hold whole sequences.
        y : ignored
        lengths : list of ints or None
            How long every sequence is; by default all rows are one, or every chunk of a Dask collection is.

        Returns
        -------
        self
        """
        check_parameters(self)
        report, finish = reporter(self, self.verbose)
        self.__dict__.pop("stream_", None)  # an earlier fit's
        problem = read_sequence_problem(self, X, y, lengths)
        self._keep_read(problem)
        chain, path = self._fit(problem, report)
        self._keep_path(path)
        shares = state_counts(problem, chain)[0] / len(problem.rows.data)
        order = np.argsort(-shares, kind="stable")
        self.start_, self.transition_, self.components_, _ = chain.take(order)
        self.weights_ = shares[order]
        self._check_states(problem)
        finish()
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Self:
        """More rows of a stream that is seen once: the states behind all rows so far, of which the last two are kept.

        Without ``lengths``, the rows go on where those of the last call ended, as ``fit`` takes all rows for one
        sequence; they may come one at a time. With ``lengths``, they are sequences that begin here, and a next call
        without ``lengths`` goes on with the last of them. So whatever the batches, the triples are those of ``fit``.

        The projections are learnt by doubly stochastic steps (`latentviews.stochastic`) from the first ``pilot_size``
        triples. Baum–Welch would need rows again, so this is the spectral estimate. Bandwidths, point masses and the
        range of the densities are read off the first batch: give it some thousand rows. Densities of views of several
        columns stand on at most 200 rows of it as landmarks, or on none with ``features=FourierFeatures(...)`` and
        ``density_bandwidth=None``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        lengths : list of ints or None

        Returns
        -------
        self
        """
        check_parameters(self)
        check_one_batch(X)
        solver, problem = self._solver(), None
        if not hasattr(self, "stream_"):
            problem = read_sequence_problem(self, X, y, lengths)
            self._keep_read(problem)
            self.stream_: ChainStream = start_chain_stream(problem, self._spectral_bandwidth(), self.pilot_size)
        table = to_numpy(read_sequences(self, X, reset=False)[0])
        self.stream_ = self.stream_.add(table, None if lengths is None else check_lengths(lengths, len(table)))
        found = self.stream_.fit.solve(solver, np.random.default_rng(self.random_state))
        self.start_, self.transition_, self.components_, _ = self.stream_.estimate(found)  # the commonest state first
        self.weights_ = found.weights / found.weights.sum()
        self._keep_path(FitPath(spectral_summary(found)))
        if problem is not None:
            self._check_states(problem)
        return self

    def _solver(self) -> Solver:
        return JointDiagonalization() if self.solver is None else self.solver

    def _spectral_bandwidth(self) -> Any:
        """The bandwidth of emissions that no polish follows."""
        if is_auto(self.density_bandwidth):
            return "isj" if self.kernel is None and self.features is None else None
        return self.density_bandwidth

    def _fit(self, problem: SequenceProblem, report: Report) -> FoundChain:
        """The chain by the way that the parameters ask for."""
        settings = SpectralSettings(self._solver(), None, False)
        polish = Sieve(trial_rows=TRIAL_ROWS) if is_auto(self.polish) else self.polish
        if polish is None:
            return found_by_moments(problem, settings, self._spectral_bandwidth())
        if not isinstance(polish, Sieve):
            raise TypeError(f"polish must be a Sieve, whose steps are exact EM, None or 'auto'; got {polish!r}.")
        guesses = chain_starts(problem, settings)
        return polished_chain(problem, guesses, polish, self.density_bandwidth, self.n_jobs, report)

    def _keep_read(self, problem: SequenceProblem) -> None:
        self.views_, self.n_states_ = problem.rows.columns, problem.rows.rank
        self.kernels_ = [kernel_of(phi) for phi in problem.rows.prototypes]
        if problem.rows.rank_test is not None:
            self.rank_test_ = problem.rows.rank_test

    def _keep_path(self, path: FitPath) -> None:
        spectral, self.lower_bound_, self.n_iter_, self.converged_, objectives, agreements = path
        self.start_objectives_, self.start_agreements_ = objectives or {}, agreements or {}
        if spectral is not None:
            self.spectrum_, _, self.residual_ = spectral

    def _check_states(self, problem: SequenceProblem) -> None:
        """Say what makes the states doubtful."""
        rows = problem.rows
        if self.n_states_ == 1:
            return
        if looks_independent(problem):
            warn_user(
                "Rows that follow each other look independent, so time does not tell states apart: they may be any "
                "parts of one mixture.",
                IdentifiabilityWarning,
            )
        n_rows = len(rows.data)
        rare = np.flatnonzero(self.weights_ * n_rows < RARE).tolist()
        if rare:
            each = f"State {rare[0]} is" if len(rare) == 1 else f"States {', '.join(map(str, rare))} are each"
            warn_user(
                f"{each} expected in less than one of {n_rows} rows, so never visited; ask for fewer states.",
                IdentifiabilityWarning,
            )
        least = np.linalg.svd(self.transition_, compute_uv=False)[-1]
        if least < FORGETFUL:
            warn_user(
                f"The transition matrix is near one without independent rows (least singular value {least:.2g}): "
                "some states are followed by the same mixture of states as others, so time hardly tells them apart. "
                "Ask for fewer states, or treat rows as independent.",
                IdentifiabilityWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
