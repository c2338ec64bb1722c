"""Topics: bags that mix k distributions by shares of their own."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import as_shares
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    NoneOr,
    Positive,
    Seed,
    WithData,
    check_parameters,
)
from latentviews._sentences import warn_user
from latentviews._validation import (
    IdentifiabilityWarning,
    UnsupportedError,
    all_or_nothing,
    check_count,
    is_auto,
    is_batches,
    table_of,
)
from latentviews.core.kernels.base import Kernel
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.discrete.bags import BagMoments, bag_moments
from latentviews.discrete.dirichlet import DirichletParts
from latentviews.discrete.topic_em import counts_over_chances, fold_in
from latentviews.discrete.topic_kinds import (
    TopicEstimate,
    WordSettings,
    checked_projection,
    random_parts,
    topics_of_draws,
    topics_of_views,
    topics_of_words,
    word_parts,
)
from latentviews.discrete.topic_rows import grouped, prototypes_of, read_draws, read_views

NEAR = 1e-6  # rotations of the third moment below this angle are far below its noise
MOST = 1e15  # larger counts are not held to the last one
FOLDS, FOLD_TOL = 100, 1e-4  # steps that find the shares of a bag, and when they are near enough


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Latent Dirichlet allocation by corrected moments and EM, for words and for anything with a kernel.

    A bag has shares :math:`h \sim \mathrm{Dirichlet}(\alpha)`, and every draw in it comes from part j with probability
    h_j. Moments of two and three different draws, corrected for the prior, have the parts as an orthogonal
    decomposition (Anandkumar et al. 2012; Song et al. 2014, section 7), with no matrix of words by words. What a bag
    is depends on what is passed:

    - *words*: ``X`` is a table of counts, documents by words, sparse or not. EM goes on from the topics of the moments.
    - *draws in groups*: ``fit(X, groups=...)``, one row per draw, whose group is named. The parts are distributions
      with no assumed shape, by a kernel.
    - *views that differ*: ``views=[[0], [1, 2], ...]``. A row's views each draw a part by the row's own shares (mixed
      membership), and have distributions of their own.

    Parameters
    ----------
    n_components : int, default=10
        The number of parts k.
    concentration : "auto" or float, default="auto"
        α₀ = Σ α_h: towards zero a bag is of one part, when large all bags mix alike. "auto" solves
        Σ_h π_h(α₀) = 1, which tells it from three parts on; with two it is taken to be 1, with a warning. Of words it
        is then read off the topics that EM finds, which is steadier where it is small, unless that differs from the
        solution by more than its standard error allows.
    views : list of lists of columns, or None
        The columns of every view, three views or more, where views differ.
    kernel : Kernel, list of one per view, or None
        Of draws and views; by default Gaussian, with the bandwidth by Silverman's rule for one column and the median
        distance for more, and `Delta` for columns of text, flags and categories. Words take none.
    smoothing : float, default=0.05
        What is added to a word's expected count in every topic.
    max_iter : int, default=100
        EM steps on words at most; 0 leaves the topics as the moments say.
    tol : float, default=3e-4
        EM stops when a step adds less than this to the log-likelihood per word.
    solver : object with ``decompose``, or None
        Of the third moment; `JointDiagonalization` by default.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (k, n_words), or tuple of embeddings
        The chances of words in every topic; for draws one embedding with ``density``, for views one per view.
    weights_ : array of shape (k,)
        Mean shares of the parts, decreasing.
    concentration_ : float
    prior_ : array of shape (k,)
        α, by which shares are found: ``concentration_ * weights_``, or where words have an "auto" concentration, as EM
        learns it on the way. ``concentration_`` is that of the model, if it holds; EM's prior predicts better where
        it does not.
    raw_weights_ : array of shape (k,) or None
        Weights as the eigenvalues say, whose sum need not be one; None where moments gave no start.
    spectrum_ : array or None
        The leading eigenvalues of the pair moment.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
    views_ : tuple of lists of column indices, where views differ
    categories_ : dict
        Of columns whose categories are no numbers: their values, in the order of the codes that stand for them.
    moments_, projection_ : BagMoments, array
        After ``partial_fit``: sums over the bags seen, and the directions in which they are taken.

    References
    ----------
    Anandkumar, Foster, Hsu, Kakade & Liu (2012), "A spectral algorithm for latent Dirichlet allocation". Song,
    Anandkumar, Dai & Xie (2014), section 7. Blei, Ng & Jordan (2003), "Latent Dirichlet allocation".

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import TopicModel
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.5, 0.4, 0.1, 0, 0], [0, 0, 0.1, 0.4, 0.5]])
    >>> shares = rng.dirichlet([0.5, 0.5], size=2000)
    >>> X = np.array([rng.multinomial(50, share @ topics) for share in shares])
    >>> model = TopicModel(2, concentration=1.0, random_state=0).fit(X)
    >>> [np.argsort(-topic)[:2].tolist() for topic in model.components_] in ([[0, 1], [4, 3]], [[4, 3], [0, 1]])
    True
    >>> model.transform(X).shape
    (2000, 2)
    """

    _kernels_by_dtype = True
    _columns_are_one_view = True  # of a draw
    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "concentration": AutoOr(Positive()),
        "views": WithData(),
        "kernel": WithData(),
        "smoothing": Positive(),
        "max_iter": Count(0),
        "tol": Positive(),
        "solver": NoneOr(Ability("decompose")),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 10,
        concentration: float | str = "auto",
        *,
        views: Any = None,
        kernel: Kernel | list[Kernel] | None = None,
        smoothing: float = 0.05,
        max_iter: int = 100,
        tol: float = 3e-4,
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.concentration = concentration
        self.views = views
        self.kernel = kernel
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Words are counts, in sparse tables too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.views is None
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Learn the parts.

        Parameters
        ----------
        X : sparse or dense array of shape (n_documents, n_words), or rows of draws or views
        y : ignored
        groups : array of shape (n_draws,) or None
            The group of every row, where rows are draws.

        Returns
        -------
        self
        """
        check_parameters(self)
        self._check_doors(groups)
        rng = np.random.default_rng(self.random_state)
        for of_others in ("views_", "categories_", "moments_", "projection_"):
            self.__dict__.pop(of_others, None)
        if groups is not None:
            rows = read_draws(self, X, reset=True)
            (prototype,) = prototypes_of(self, (list(range(rows.shape[1])),))
            estimate = topics_of_draws(rows, grouped(groups, len(rows))[0], prototype, self._settings(), rng)
        elif self.views is not None:
            rows, self.views_ = read_views(self, X, reset=True)
            prototypes = prototypes_of(self, self.views_)
            estimate = topics_of_views(rows, self.views_, prototypes, self._settings(), rng)
        else:
            estimate = topics_of_words(self._counts(X, reset=True), self._settings(), rng)
        self._keep(estimate)
        return self

    def _check_doors(self, groups: Any) -> None:
        """Refuse data of two kinds at once, and what nothing would look at."""
        if groups is not None and self.views is not None:
            raise ValueError("groups are of draws and views of columns: pass one of them, not both.")
        if self.kernel is not None and groups is None and self.views is None:
            raise ValueError("kernel is of draws and views; words take none: pass groups or views, or leave it out.")

    def _settings(self) -> WordSettings:
        concentration = None if is_auto(self.concentration) else float(self.concentration)
        solver = JointDiagonalization(tol=NEAR) if self.solver is None else self.solver
        return WordSettings(self.n_components, concentration, self.smoothing, self.max_iter, self.tol, solver)

    def _counts(self, X: Any, *, reset: bool) -> sparse.csr_array:
        """Counts as a sparse table of nonnegative floats."""
        if is_batches(X):
            raise TypeError(f"TopicModel expects one table here; got {type(X).__name__}. Put its batches together.")
        if not sparse.issparse(X) and np.asarray(X).dtype.kind in "US":
            raise ValueError(
                f"{type(self).__name__} takes a table of counts, documents by words; got text. scikit-learn's "
                "CountVectorizer makes counts of it."
            )
        counts = sparse.csr_array(table_of(self, X, reset=reset, accept_sparse="csr", dtype=np.float64))
        if counts.nnz and counts.data.min() < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: X needs counts of words.")
        most = counts.data.max(initial=0.0)
        if most > MOST:
            raise ValueError(
                f"{type(self).__name__} needs counts of words, of at most {MOST:.0e}; got {most:.3g}. Look for a "
                "damaged entry, or divide all by one number."
            )
        counts.sort_indices()
        return counts

    def _keep(self, estimate: TopicEstimate) -> None:
        self.components_, self.weights_ = estimate.components, estimate.weights
        self.concentration_ = float(estimate.concentration)
        self.prior_ = self.concentration_ * self.weights_ if estimate.prior is None else estimate.prior
        self.raw_weights_, self.spectrum_ = estimate.raw_weights, estimate.spectrum
        self.n_iter_, self.converged_ = estimate.n_iter, estimate.converged
        self._n_features_out = self.n_components

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add documents, counts of words, to the moments.

        Only sums are kept, so topics are those of the moments, without EM. The first batch fixes the projection of
        words that sums are taken of: let it be some thousand documents. ``fit`` keeps no sums: after it, sums begin
        anew.

        Parameters
        ----------
        X : sparse or dense array of shape (n_documents, n_words)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        self._check_doors(None)
        if self.views is not None or isinstance(getattr(self, "components_", None), tuple):
            raise ValueError("partial_fit takes counts of words; of views and draws, fit takes all rows at once.")
        rng, first = np.random.default_rng(self.random_state), not hasattr(self, "components_")
        bags, settings = self._counts(X, reset=first), self._settings()
        try:
            parts = self._added(bags, settings, rng)
        except UnsupportedError as error:
            warn_user(f"{error} Topics are those of documents at random until there are more.", IdentifiabilityWarning)
            parts = random_parts(bags, settings, rng)
        vectors = np.maximum(parts.vectors, 0.0)
        vectors = np.where(vectors.sum(axis=0) > 0, vectors, 1.0)  # where no word was seen, any is as likely
        topics = np.ascontiguousarray(as_shares(vectors, axis=0).T)
        self._keep(TopicEstimate(as_shares(parts.weights), parts.concentration, topics, None, parts.weights))
        return self

    def _added(self, bags: sparse.csr_array, settings: WordSettings, rng: np.random.Generator) -> DirichletParts:
        """The parts of all documents so far."""
        if not hasattr(self, "moments_"):
            self.projection_ = checked_projection(bags, self.n_components, rng)[0]
            self.moments_: BagMoments = bag_moments(bags, self.projection_)
        else:
            self.moments_ = self.moments_ + bag_moments(bags, self.projection_)
        return word_parts(self.moments_.means(), settings, rng)

    def transform(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """The shares of every document, group or row, (n, k); those of the prior where there is nothing to go by.

        Groups are in the order in which they are met.

        Parameters
        ----------
        X : counts, draws or rows, as ``fit`` takes them
        groups : array of shape (n_draws,) or None
            The group of every row, where rows are draws.

        Returns
        -------
        array of shape (n, k)
        """
        check_is_fitted(self)
        if isinstance(self.components_, tuple):
            bags, chances = self._chances(X, groups)
        else:
            bags, chances = self._counts(X, reset=False), self.components_.T
        return fold_in(bags, chances, self.prior_, FOLDS, FOLD_TOL)

    def _chances(self, X: Any, groups: Any) -> tuple[sparse.csr_array, np.ndarray]:
        """Bags of atoms, and the density of every atom in every part: draws, or the views of a row."""
        if hasattr(self, "views_"):
            rows, _ = read_views(self, X, reset=False)
            densities = [part.density(rows[:, view]) for part, view in zip(self.components_, self.views_, strict=True)]
            bags = sparse.csr_array(np.ones((1, len(densities))))
            return sparse.csr_array(sparse.kron(bags, sparse.eye_array(len(rows)))), np.concatenate(densities)
        if groups is None:
            raise ValueError("This model was fitted to draws in groups: pass the groups of these draws.")
        rows = read_draws(self, X, reset=False)
        return grouped(groups, len(rows))[0], self.components_[0].density(rows)

    def perplexity(self, X: Any, shares: np.ndarray | None = None) -> float:
        """exp(−log-likelihood per word) of documents, by their shares: those that ``transform`` gives, or others'.

        For document completion, pass the ``shares`` of one half of the words and ``X`` of the other.

        Parameters
        ----------
        X : sparse or dense array of shape (n_documents, n_words)
        shares : array of shape (n_documents, k) or None

        Returns
        -------
        float
        """
        self._check_words("Perplexity is of words")
        bags = self._counts(X, reset=False)
        if not bags.sum() > 0:
            raise ValueError("Perplexity is of words, and X holds none; pass documents with words.")
        shares = self.transform(bags) if shares is None else np.asarray(shares, dtype=float)
        wanted = bags.shape[0], self.n_components
        if shares.shape != wanted:
            raise ValueError(f"shares needs one row per document, one column per topic, {wanted}; got {shares.shape}.")
        _, value = counts_over_chances(bags, shares, self.components_.T)
        return float(np.exp(-value / bags.sum()))

    def top_words(self, n_words: int = 10, names: Any = None) -> list[list[Any]]:
        """The likeliest words of every topic: their names, or their columns in ``X`` without.

        Parameters
        ----------
        n_words : int, default=10
        names : sequence of str or None
            The words of the columns; by default those of the frame that was fitted.

        Returns
        -------
        list of lists, one per topic
        """
        self._check_words("Words are in topics of counts")
        n_words = check_count("n_words", n_words)
        names = getattr(self, "feature_names_in_", None) if names is None else names
        if names is not None and (isinstance(names, str) or not hasattr(names, "__len__")):
            raise TypeError(f"names must be a list of words, one per column of X; got {names!r:.60}.")
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"names needs one word per column of X, {self.n_features_in_}; got {len(names)}.")
        names = names if names is None or isinstance(names, Mapping) else list(names)
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n_words]
        return [[int(w) if names is None else names[w] for w in topic] for topic in order]

    def _check_words(self, sentence: str) -> None:
        """Refuse a question of words to parts of draws or views."""
        check_is_fitted(self)
        if isinstance(self.components_, tuple):
            raise ValueError(f"{sentence}; parts of draws and views have densities, `components_[0].density`.")
