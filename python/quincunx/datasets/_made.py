"""Small samples for tutorials, each drawn from a law that its docstring tells, with a seed."""

from typing import NamedTuple

import numpy as np

from quincunx import _check
from quincunx._optional import require
from quincunx._rng import RandomSource, generator
from quincunx._types import DataFrame, Floats, Ints

_LARGEST = 1000  # rows or columns of a table: samples are small
_MOST_PEOPLE = 1_000_000  # so, too; not tuned

_AGES = ("18-34", "35-54", "55+")
_SCHOOLS = ("school", "college", "university")
_INCOMES = ("low", "middle", "high")
_ANSWERS = ("no", "yes")
# P(age), P(education | age), P(income | education), P(moves | age).
_AGE = np.array([0.3, 0.4, 0.3])
_EDUCATION = np.array([[0.3, 0.4, 0.3], [0.4, 0.35, 0.25], [0.6, 0.25, 0.15]])
_INCOME = np.array([[0.5, 0.4, 0.1], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]])
_MOVES = np.array([[0.6, 0.4], [0.8, 0.2], [0.95, 0.05]])


class MadeCounts(NamedTuple):
    """Counts of a Poisson factorization, and the rates that they were drawn at.

    Attributes
    ----------
    counts : ndarray of int64, shape (n_rows, n_columns)
    rates : ndarray of float64, shape (n_rows, n_columns)
        Of rank `n_components`.
    """

    counts: Ints
    rates: Floats


class MadeNetwork(NamedTuple):
    """Counts between pairs of a network with communities, and what they were drawn from.

    Attributes
    ----------
    counts : ndarray of int64, shape (n_nodes, n_nodes)
        From rows to columns; the diagonal is 0.
    members : ndarray of float64, shape (n_nodes, n_communities)
        How much each takes part in each community.
    between : ndarray of float64, shape (n_communities, n_communities)
        Rates from community to community: those of counts are ``members @ between @ members.T`` off the diagonal.
    """

    counts: Ints
    members: Floats
    between: Floats


class Survey(NamedTuple):
    """Answers of people to four questions, and the answers that there could have been.

    Attributes
    ----------
    records : DataFrame
        A row for each, with columns `age`, `education`, `income` and `moves`.
    categories : dict of str to list of str
        The declared answers of each question, as models with `categories` take them: facts of the questionnaire.
    """

    records: DataFrame
    categories: dict[str, list[str]]


def make_counts(
    n_rows: int = 100, n_columns: int = 40, n_components: int = 4, *, shape: float = 0.3, rng: RandomSource = 0
) -> MadeCounts:
    """Return counts drawn from a Poisson factorization with gamma factors.

    ``counts[i, j]`` is Poisson of rate ``sum_k theta[i, k] phi[k, j]``, all entries of theta and phi being independent
    gamma variables of the given shape and of rate `shape`, so that a count's mean is `n_components` [1]_.

    Parameters
    ----------
    n_rows, n_columns, n_components : int
        Sizes, 1 to 1000.
    shape : float
        Of the gamma laws, at least 0.001: small ones make sparse factors and counts of heavy tails.
    rng : RandomSource
        The same numbers for the same seed, by default 0.

    Returns
    -------
    MadeCounts
        Counts and rates.

    Raises
    ------
    TypeError, ValueError
        If a size is not a whole number from 1 to 1000, the shape no number from 0.001 on, or `rng` no source of
        randomness.

    References
    ----------
    .. [1] P. Gopalan, J. M. Hofman and D. M. Blei (2015), Scalable recommendation with hierarchical Poisson
       factorization, UAI 2015.

    Examples
    --------
    >>> from quincunx.datasets import make_counts
    >>> counts, rates = make_counts(6, 4, 2)
    >>> counts.shape, counts.dtype.kind
    ((6, 4), 'i')
    """
    rows = _check.whole(n_rows, "n_rows", minimum=1, maximum=_LARGEST)
    columns = _check.whole(n_columns, "n_columns", minimum=1, maximum=_LARGEST)
    components = _check.whole(n_components, "n_components", minimum=1, maximum=_LARGEST)
    form = _check.real(shape, "shape")
    if not form >= 0.001:
        raise ValueError(f"`shape` must be at least 0.001, got {shape!r}")
    chance = generator(rng)
    theta = chance.gamma(form, 1.0, (rows, components)) / form
    phi = chance.gamma(form, 1.0, (components, columns)) / form
    rates = theta @ phi
    return MadeCounts(chance.poisson(rates), rates)


def make_network(n_nodes: int = 60, n_communities: int = 3, *, rng: RandomSource = 0) -> MadeNetwork:
    """Return counts between the nodes of a network with overlapping communities.

    Memberships are gamma variables of shape 0.3 and mean 0.3; rates between communities gamma variables of shape 0.5
    and mean 0.1, within one another of shape and mean 4 on top; counts are Poisson, those of a node with itself left
    out. It is a mixed-membership blockmodel as `factorization.PoissonBlockmodel` fits it, the network that the
    experiment with communities of Schein et al. [1]_ is repeated on here.

    Parameters
    ----------
    n_nodes, n_communities : int
        Sizes, 1 to 1000.
    rng : RandomSource
        The same numbers for the same seed, by default 0.

    Returns
    -------
    MadeNetwork
        Counts, memberships, and rates between communities.

    Raises
    ------
    TypeError, ValueError
        If a size is not a whole number from 1 to 1000, or `rng` no source of randomness.

    References
    ----------
    .. [1] A. Schein, Z. S. Wu, A. Schofield, M. Zhou and H. Wallach (2019), Locally private Bayesian inference for
       count models, ICML 2019.

    Examples
    --------
    >>> from quincunx.datasets import make_network
    >>> network = make_network(20, 2)
    >>> network.counts.shape, network.members.shape, int(network.counts.diagonal().sum())
    ((20, 20), (20, 2), 0)
    """
    nodes = _check.whole(n_nodes, "n_nodes", minimum=1, maximum=_LARGEST)
    communities = _check.whole(n_communities, "n_communities", minimum=1, maximum=_LARGEST)
    chance = generator(rng)
    members = chance.gamma(0.3, 1.0, (nodes, communities))
    between = chance.gamma(0.5, 0.2, (communities, communities)) + np.diag(chance.gamma(4.0, 1.0, communities))
    counts = chance.poisson(members @ between @ members.T)
    np.fill_diagonal(counts, 0)
    return MadeNetwork(counts, members, between)


def make_survey(n_people: int = 1000, *, rng: RandomSource = 0) -> Survey:
    """Return made answers of people to four questions, drawn from a Bayesian network.

    Age has the shares .3, .4, .3; education given age, income given education, and whether one will move within a year
    given age have the tables

    =======  ======  =======  ==========  =====  ====
    age      school  college  university  no     yes
    =======  ======  =======  ==========  =====  ====
    18-34    .3      .4       .3          .6     .4
    35-54    .4      .35      .25         .8     .2
    55+      .6      .25      .15         .95    .05
    =======  ======  =======  ==========  =====  ====

    ==========  ====  ======  ====
    education   low   middle  high
    ==========  ====  ======  ====
    school      .5    .4      .1
    college     .3    .5      .2
    university  .1    .4      .5
    ==========  ====  ======  ====

    Parameters
    ----------
    n_people : int
        How many, 1 to a million.
    rng : RandomSource
        The same numbers for the same seed, by default 0.

    Returns
    -------
    Survey
        The records, and the declared answers.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError, ValueError
        If `n_people` is not a whole number from 1 to a million, or `rng` no source of randomness.

    Examples
    --------
    >>> from quincunx.datasets import make_survey
    >>> survey = make_survey(500)
    >>> survey.records.shape, survey.categories["income"]
    ((500, 4), ['low', 'middle', 'high'])
    """
    people = _check.whole(n_people, "n_people", minimum=1, maximum=_MOST_PEOPLE)
    chance = generator(rng)
    pandas = require("pandas", "datasets")

    def drawn(table: Floats, given: Ints) -> Ints:
        """Invert the distribution function of each one's row."""
        ends = np.cumsum(table, axis=-1)[..., :-1]
        found: Ints = (chance.random(people)[:, None] >= ends[given]).sum(axis=1)
        return found

    age = drawn(_AGE[None], np.zeros(people, dtype=np.int64))
    education = drawn(_EDUCATION, age)
    codes = {
        "age": (age, _AGES),
        "education": (education, _SCHOOLS),
        "income": (drawn(_INCOME, education), _INCOMES),
        "moves": (drawn(_MOVES, age), _ANSWERS),
    }
    records = pandas.DataFrame({name: np.array(labels)[code] for name, (code, labels) in codes.items()})
    return Survey(records, {name: list(labels) for name, (_, labels) in codes.items()})
