"""The joint density of many columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Ability,
    Constraint,
    Count,
    NoneOr,
    Seed,
    Such,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews._progress import CallbackSupportMixin, Report, reporter, with_callbacks
from latentviews._sentences import warn_user
from latentviews._validation import all_or_nothing, check_count, check_rows, draws_of, is_auto
from latentviews.core import streams
from latentviews.core.by_parts import by_parts
from latentviews.core.categories import chosen_codes, code_of, coded, decoded
from latentviews.core.checked import NOWHERE, brought, checked_batches, is_stream, refuse_outside, unmapped
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.space import Space
from latentviews.core.tables import TrainingRows, rows_inside, training_rows
from latentviews.joint.checks import check_constants, check_empty_rows
from latentviews.joint.column_density import ColumnDensity
from latentviews.joint.column_kernels import column_kernels
from latentviews.joint.methods import Stack
from latentviews.joint.problem import JointEstimate, JointProblem
from latentviews.joint.trees import could_be_tree, read_tree

PILOT = 20_000
NARROW, WIDE = 1e-100, 1e100  # what columns may span: their squares are numbers


class LowRankDensity(CallbackSupportMixin, DensityMixin, BaseEstimator):
    r"""The joint density of many columns, as a combination of few products.

    .. math:: p(x) = \sum_h \pi_h\, c_h\bigl(F_{h1}(x_1), \ldots, F_{hd}(x_d)\bigr) \prod_j f_{hj}(x_j)

    By default the density is a stack of mixtures with few components, each joining the distributions of its columns,
    which have no assumed shape, by independence or a Gaussian copula. ``method=SignedTrain()`` is the estimate of Song
    & Dai (2013), a low-rank decomposition of the kernel embedding of all columns along ``tree``.

    Parameters
    ----------
    rank : int, "auto" or one per edge, default="auto"
        The number of components, or of singular vectors at every edge of the tree (or at each, for `SignedTrain`, in
        the order of ``tree_.edges``). "auto" chooses, or combines several, by held-out likelihood.
    tree : "caterpillar", "auto", nested tuples of columns or networkx tree, default="caterpillar"
        The latent tree of `SignedTrain`: its leaves are the columns, by number or name; constant ones are cut off it.
        "auto" learns it from distances between embeddings. The other methods have one hidden variable and need no tree.
    method : Stack, ProductMixture or SignedTrain, default=Stack()
    kernel : Kernel, list of one per column (or None), or None
        What the values of a column are: numbers for `Gaussian`, categories for `Delta`, angles for `VonMises`; or
        ``Gaussian().on(["age"]) * Delta().on(["job"])``, each column once. None chooses by dtype: `Delta` for
        categories, flags and text, ``Gaussian()`` for numbers.
        ``Gaussian(space=HalfLine())`` is for numbers from zero on, ``Interval(0, 1)`` for shares.
    pilot_size : int, default=20_000
        Rows to which all is fitted before passes over all rows.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    density_ : StackedMixture or SignedDensity
    rank_ : int, or one per edge
        The rank that was chosen: of the part with the largest share in a stack; at every edge of ``tree_`` where they
        follow from the tolerance of `SignedTrain`.
    mass_ : float
        The integral of the estimate before anything is done to it: one, but for `SignedTrain`.
    negative_share_ : float
        The share of fresh rows at which the estimate is negative before it is floored: zero, but for `SignedTrain`.
    columns_ : list of int
        The columns that vary.
    constants_ : dict
        The values of columns that do not: the density has a point mass there.
    kernels_ : list of Kernel, one per column
        As given, or as chosen by the dtypes of the columns.
    tree_ : Tree or None
        Its leaves are places in ``columns_``.
    categories_ : dict
        Of columns whose categories are no numbers: their values, in the order of the codes that stand for them.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LowRankDensity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) + 3.0 * rng.integers(2, size=(500, 1))
    >>> model = LowRankDensity(random_state=0).fit(X)
    >>> bool(model.score(X) > -5.2)
    True
    >>> given = model.conditional([0], {1: 3.5, 2: 2.5})  # rows from the second cluster
    >>> bool(abs(given.sample(1000, random_state=0).mean() - 3.0) < 0.3)
    True
    """

    _kernels_by_dtype = True
    _parameters: ClassVar[dict[str, Constraint]] = {
        "rank": WithData(),
        "tree": Such(could_be_tree, '"caterpillar", "auto", nested tuples of columns, or a networkx tree'),
        "method": NoneOr(Ability("estimate")),
        "kernel": WithData(),
        "pilot_size": Count(2),
        "verbose": Verbosity(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        rank: Any = "auto",
        *,
        tree: Any = "caterpillar",
        method: Any = None,
        kernel: Kernel | Sequence[Kernel] | None = None,
        pilot_size: int = PILOT,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.rank = rank
        self.tree = tree
        self.method = method
        self.kernel = kernel
        self.pilot_size = pilot_size
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), iterable of batches, path of a file or Dask collection
            Numbers, NaN where a value is missing. All but an array are passed over more than once.
        y : ignored
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        check_parameters(self)
        report, finish = reporter(self, self.verbose)
        method = Stack() if self.method is None else self.method
        problem = self._read(X, sample_weight, report)
        found: JointEstimate = method.estimate(problem)
        self.density_, self.rank_, self.tree_ = found
        self.mass_, self.negative_share_ = float(self.density_.mass), float(self.density_.negative_share)
        finish()
        return self

    def _read(self, X: Any, sample_weight: Any, report: Report) -> JointProblem:
        """Rows, columns and a pilot, or a sentence on what no fit can answer."""
        largest = self._largest_rank()
        rng = np.random.default_rng(self.random_state)
        rows = training_rows(
            self._data(unmapped(X, sample_weight), reset=True), self.pilot_size, rng, sample_weight
        ).counted()
        least = max(largest, 2)
        if len(rows.pilot) < least:
            raise ValueError(
                f"A density of rank {self.rank} needs at least {least} rows; got n_samples = {len(rows.pilot)}."
            )
        check_empty_rows(rows.data, rows.weights, rows.pilot)
        self._settle_columns(rows)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else list(names)
        if not is_auto(self.tree):  # a wrong one is refused whatever the method makes of it
            read_tree(self.tree, self.n_features_in_, names, self.columns_)
        self.kernels_ = column_kernels(self.kernel, self.n_features_in_, names, chosen_codes(self))
        kernels = {j: self.kernels_[j] for j in self.columns_}
        rows = rows_inside(rows, tuple([j] for j in kernels), list(kernels.values()), names)
        return JointProblem(
            **vars(rows),
            kernels=kernels,
            rank=self.rank,
            tree=self.tree,
            names=names,
            rng=rng,
            report=report,
        )

    def _largest_rank(self) -> int:
        """The largest rank asked for, checked; one where it is to be chosen."""
        if is_auto(self.rank):
            return 1
        several = isinstance(self.rank, list | tuple | np.ndarray) and np.ndim(self.rank) == 1 and len(self.rank) > 0
        try:
            return max(check_count("rank", rank) for rank in (self.rank if several else [self.rank]))
        except ValueError:
            raise ValueError(
                f'rank must be an integer of at least 1, a list of one per edge, or "auto"; got {self.rank!r}.'
            ) from None

    def _data(self, X: Any, *, reset: bool) -> Any:
        spaces = NOWHERE if reset else self._spaces
        X = brought(X)
        if is_stream(X):
            return checked_batches(self, X, reset=reset, spaces=spaces)
        table = to_numpy(check_rows(self, coded(self, X, reset=reset), reset=reset, missing=True))
        refuse_outside(table, spaces, getattr(self, "feature_names_in_", None))
        return table

    def _settle_columns(self, rows: TrainingRows) -> None:
        """The columns that vary, and the values of those that do not."""
        pilot = rows.pilot
        missing = np.flatnonzero(np.isnan(pilot).all(axis=0))
        if len(missing):
            raise ValueError(f"Columns {missing.tolist()} have no value in any row; leave them out.")
        low, high = np.nanmin(pilot, axis=0), np.nanmax(pilot, axis=0)
        self.constants_ = {int(j): float(low[j]) for j in np.flatnonzero(low == high)}
        self.columns_ = [j for j in range(pilot.shape[1]) if j not in self.constants_]
        if not self.columns_:
            raise ValueError(f"All {pilot.shape[1]} columns are constant over {len(pilot)} rows; there is no density.")
        wide = np.subtract(high / 2, low / 2)[self.columns_]  # halves: the whole may overflow
        extreme = [j for j, width in zip(self.columns_, wide, strict=True) if not NARROW < width < WIDE]
        if extreme:
            raise ValueError(f"Columns {extreme} span less than {NARROW} or more than {WIDE}; scale them first.")
        if self.constants_ and rows.partial:
            check_constants(self.constants_, rows.data, rows.weights, len(pilot))
        if self.constants_:
            warn_user(
                f"Columns {list(self.constants_)} are constant and were left out; the density is that of the others, "
                "and rows with other values there have density zero.",
            )

    @property
    def _spaces(self) -> dict[int, Space]:
        """The spaces of the columns that vary."""
        kernels = getattr(self, "kernels_", None) or column_kernels(self.kernel, self.n_features_in_)  # older files
        spaces = {j: kernels[j].space for j in self.columns_}
        return {j: space for j, space in spaces.items() if space is not None}

    @by_parts()
    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, over the values it has: zero where it has none.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        data = self._data(X, reset=False)
        return np.concatenate([self._score(to_numpy(batch)) for batch, _ in streams.batches(data)])

    def _score(self, table: np.ndarray) -> np.ndarray:
        logs = np.array(self.density_.log_density(table))
        for j, value in self.constants_.items():
            logs[~np.isnan(table[:, j]) & (table[:, j] != value)] = -np.inf
        return logs

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            Higher is better.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from the density.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the model, so that a call repeats itself.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rng = draws_of(self, random_state)
        rows = self.density_.sample(check_count("n_samples", n_samples), rng, self.n_features_in_)
        rows[:, list(self.constants_)] = list(self.constants_.values())
        return decoded(rows, getattr(self, "categories_", {}))

    def marginal(self, columns: Sequence[Any]) -> ColumnDensity:
        """The density of some columns, by number or name.

        Parameters
        ----------
        columns : list of indices or names

        Returns
        -------
        ColumnDensity
        """
        check_is_fitted(self)
        chosen = self._numbers(columns)
        return ColumnDensity(self.density_.marginal(chosen), chosen, self._names(chosen), self._spaces)

    def conditional(self, columns: Sequence[Any], given: Mapping[Any, float]) -> ColumnDensity:
        """The density of some columns given the values of others, by number or name; the rest are integrated out.

        Parameters
        ----------
        columns : list of indices or names
        given : dict
            Values of other columns, by index or name.

        Returns
        -------
        ColumnDensity
        """
        check_is_fitted(self)
        chosen, values = self._numbers(columns), self._known(given)
        both = sorted(set(chosen) & set(values))
        if both:
            raise ValueError(f"Columns {both} are both asked for and given; name each once.")
        joint = self.density_.marginal([*chosen, *values])
        joint = joint.conditional(values) if values else joint
        return ColumnDensity(joint, chosen, self._names(chosen), self._spaces)

    def _known(self, given: Mapping[Any, float]) -> dict[int, float]:
        """Values to condition on, by column number, constant columns left out."""
        if not isinstance(given, Mapping):
            raise ValueError(f"given must be a dict from columns to values; got {given!r}.")
        known = self._numbers(list(given), constant=True) if given else []
        categories = getattr(self, "categories_", {})
        found = [code_of(value, categories.get(j)) for j, value in zip(known, given.values(), strict=True)]
        if not all(isinstance(value, int | float | np.number) and np.isfinite(value) for value in found):
            raise ValueError(f"Values to condition on must be finite numbers; got {dict(given)!r}.")
        values = dict(zip(known, map(float, found), strict=True))
        for j, constant in self.constants_.items():
            value = values.pop(j, constant)
            if value != constant:
                raise ValueError(f"Column {j} is always {constant}; there is no density given {value}.")
        row = np.full((1, self.n_features_in_), np.nan)
        row[0, list(values)] = list(values.values())
        refuse_outside(row, self._spaces, getattr(self, "feature_names_in_", None))
        return values

    def _numbers(self, columns: Any, *, constant: bool = False) -> list[int]:
        """Different columns by number, from numbers or names; constant ones only where they are allowed."""
        names = list(getattr(self, "feature_names_in_", []))
        listed = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]
        found = [names.index(c) if isinstance(c, str) and c in names else c for c in listed]
        known = [int(c) for c in found if isinstance(c, int | np.integer) and not isinstance(c, bool)]
        if (
            not found
            or len(known) < len(found)
            or len(set(known)) < len(known)
            or not set(known) <= set(range(self.n_features_in_))
        ):
            raise ValueError(
                f"Columns must be different ones of 0 to {self.n_features_in_ - 1}, or their names; got {columns!r}."
            )
        flat = [c for c in known if c in self.constants_]
        if flat and not constant:
            raise ValueError(f"Columns {flat} are constant and have no density; the others are {self.columns_}.")
        return known

    def _names(self, columns: Sequence[int]) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(names[j]) for j in columns]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
