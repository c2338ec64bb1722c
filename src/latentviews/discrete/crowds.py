"""What the tasks are and what the workers are worth, from their answers alone."""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import as_shares
from latentviews._parameters import Constraint, Count, Flag, Positive, Seed, check_parameters
from latentviews._sentences import warn_user
from latentviews._validation import all_or_nothing
from latentviews.discrete.crowd_answers import CrowdAnswers, read_answers
from latentviews.discrete.crowd_groups import spectral_posteriors
from latentviews.discrete.crowd_model import Crowd, CrowdFit, fit_crowd, information, softmax_rows
from latentviews.discrete.spammers import spammer_probability

MANY, TRIAL = 100_000, 3  # of more tasks so many are drawn, and so many steps made from every start, to choose one by


class CrowdLabels(ClassifierMixin, BaseEstimator):
    r"""The label of every task and the confusion matrix of every worker, from answers that may be few and wrong.

    The model is Dawid & Skene's: a task has a hidden class h, and worker w answers l with probability
    :math:`C_w(h, l)`, one answer independent of the next given h. A worker's matrix is itself drawn from the crowd,
    :math:`C_w(h, \cdot) \sim \mathrm{Dirichlet}(a_h)`, and the a_h are estimated (Minka's fixed point on expected
    counts): one who answered once is taken for an average worker, one who answered often for himself. EM starts from
    votes and from the moments of three groups of workers (Zhang et al. 2016), and keeps the start of higher evidence.

    Answers come in long form, one row per answer: a data frame with the columns ``task``, ``worker`` and ``label`` (or
    three columns in that order), a table of three columns, or a tuple of three arrays. Tasks, workers and labels are
    whatever can be hashed. A missing label is no answer.

    Parameters
    ----------
    spectral_start : bool, default=True
        Whether EM also starts from the moments of groups of workers.
    max_iter : int, default=200
        EM steps at most, from either start.
    tol : float, default=1e-3
        EM stops when a step moves the posteriors by less than this on the mean task, in total variation.
    random_state : int, RandomState or None, default=0
        For ties where workers are put into groups.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The distinct labels, sorted where they can be compared.
    tasks_, workers_ : arrays
        The distinct ones, in the order in which they are met.
    posteriors_ : array of shape (n_tasks, k)
        P(class | answers) of every task.
    labels_ : array of shape (n_tasks,)
        The most probable class of every task.
    weights_ : array of shape (k,)
        How common the classes are.
    confusion_ : array of shape (n_workers, k, k)
        P(answer | class) of every worker, one row per class.
    crowd_confusion_ : array of shape (k, k)
        The mean of the law that workers' matrices come from: what to expect of a new worker.
    pooling_ : array of shape (k,)
        How many answers the crowd counts for beside a worker's own, by class; many where workers are alike.
    spammer_probability_ : array of shape (n_workers,)
        The probability that a worker's answers do not depend on the class: one law of answers for all classes, against
        a matrix as the crowd's or any other, with tasks judged by the other workers. How common each is is estimated.
    information_ : array of shape (n_workers,)
        The share of the uncertainty about a class that one answer takes away, I(class; answer) / H(class): 0 for a
        spammer, 1 for a worker who tells the classes apart without fail, be it under wrong names.
    n_answers_ : array of shape (n_workers,)
        The weight of every worker's answers.
    evidence_ : float
        A lower bound on the log-likelihood of all answers, matrices of workers integrated out.
    start_ : {"votes", "spectral"}
        The start that was kept.
    n_iter_ : int
        Steps of EM, from the start that was kept; of more than 100,000 tasks those on all of them, after a fit to some.
    converged_ : bool
    crowd_ : Crowd
        The fitted law of workers' matrices, and every worker's expected answers by class.

    References
    ----------
    Dawid & Skene (1979), Applied Statistics 28. Zhang, Chen, Zhou & Jordan (2016), "Spectral methods meet EM", JMLR 17.
    Minka (2000), "Estimating a Dirichlet distribution".

    Examples
    --------
    >>> from latentviews import CrowdLabels
    >>> task = ["t1", "t1", "t1", "t2", "t2", "t2", "t3", "t3", "t3", "t4", "t4", "t4"]
    >>> worker = ["ann", "bob", "eve"] * 4
    >>> label = ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "dog", "dog", "dog", "dog"]
    >>> model = CrowdLabels().fit((task, worker, label))
    >>> model.labels_.tolist()
    ['cat', 'dog', 'cat', 'dog']
    >>> model.workers_[model.information_.argmin()]
    'eve'
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "spectral_start": Flag(),
        "max_iter": Count(),
        "tol": Positive(),
        "random_state": Seed(),
    }

    def __init__(
        self, *, spectral_start: bool = True, max_iter: int = 200, tol: float = 1e-3, random_state: Any = 0
    ) -> None:
        self.spectral_start = spectral_start
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Answers in long form are no table of features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from answers.

        Parameters
        ----------
        X : data frame, array of shape (n_answers, 3), or three arrays
            Task, worker and label of every answer.
        y : ignored
        sample_weight : array of shape (n_answers,) or None
            What every answer counts for.

        Returns
        -------
        self
        """
        check_parameters(self)
        answers = read_answers(X, sample_weight)
        best = self._best_fit(answers, np.random.default_rng(self.random_state))
        if not best.converged:
            warn_user(f"EM stopped after {self.max_iter} steps short of tol={self.tol:g}; raise max_iter.")
        self._keep(answers, best)
        return self

    def _best_fit(self, answers: CrowdAnswers, rng: np.random.Generator) -> CrowdFit:
        """EM from votes and from moments, on some of many tasks; then on all from the one of higher evidence."""
        some = answers.some(MANY, rng)
        votes = some.votes()
        starts = {"votes": as_shares(votes + votes.sum(axis=0) / votes.sum() * 1e-6, axis=1)}
        spectral = spectral_posteriors(some, rng) if self.spectral_start else None
        if spectral is not None:
            starts["spectral"] = spectral
        steps = self.max_iter if some is answers else min(TRIAL, self.max_iter)
        found = {name: fit_crowd(some, start, steps, self.tol) for name, start in starts.items()}
        self.start_ = max(found, key=lambda name: found[name].evidence)
        best = found[self.start_]
        if some is answers:
            return best
        posteriors = softmax_rows(best.crowd.log_joint(answers.table))
        return fit_crowd(answers, posteriors, self.max_iter, self.tol, best.crowd.prior)

    def _keep(self, answers: CrowdAnswers, best: CrowdFit) -> None:
        crowd = best.crowd
        self.classes_, self.tasks_, self.workers_ = answers.labels, answers.tasks, answers.workers
        self.crowd_, self.posteriors_ = crowd, best.posteriors
        self.labels_ = self.classes_[best.posteriors.argmax(axis=1)]
        self.weights_, self.confusion_ = crowd.weights, crowd.confusion
        self.crowd_confusion_, self.pooling_ = as_shares(crowd.prior, axis=1), crowd.prior.sum(axis=1)
        self.spammer_probability_ = spammer_probability(crowd, answers, best.posteriors)
        self.information_ = information(crowd)
        self.n_answers_ = crowd.counts.sum(axis=(1, 2))
        self.evidence_, self.n_iter_, self.converged_ = best.evidence, best.n_iter, best.converged

    def predict_proba(self, X: Any = None, sample_weight: Any = None) -> np.ndarray:
        """P(class | answers) of every task in ``X``, one row per distinct task in the order in which they are met.

        Without ``X``, of the tasks of the fit. Workers who were not in the fit are taken for average ones.

        Parameters
        ----------
        X : data frame, array of shape (n_answers, 3), three arrays, or None
            Answers, as ``fit`` takes them.
        sample_weight : array of shape (n_answers,) or None

        Returns
        -------
        array of shape (n_tasks, k)
        """
        check_is_fitted(self)
        if X is None:
            return self.posteriors_
        answers = read_answers(X, sample_weight, self.workers_, self.classes_)
        crowd: Crowd = self.crowd_
        stranger = np.zeros((1, *crowd.counts.shape[1:]))
        everybody = replace(crowd, counts=np.concatenate([crowd.counts, stranger]))
        return softmax_rows(everybody.log_joint(answers.table))

    def predict(self, X: Any = None, sample_weight: Any = None) -> np.ndarray:
        """The most probable class of every task in ``X``, or of those of the fit.

        Parameters
        ----------
        X : data frame, array of shape (n_answers, 3), three arrays, or None
            Answers, as ``fit`` takes them.
        sample_weight : array of shape (n_answers,) or None

        Returns
        -------
        array of shape (n_tasks,)
        """
        return self.classes_[self.predict_proba(X, sample_weight).argmax(axis=1)]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the most probable class of every task, in the order of ``tasks_``.

        Parameters
        ----------
        X : data frame, array of shape (n_answers, 3), or three arrays
        y : ignored
        sample_weight : array of shape (n_answers,) or None

        Returns
        -------
        array of shape (n_tasks,)
        """
        return self.fit(X, y, sample_weight).labels_
