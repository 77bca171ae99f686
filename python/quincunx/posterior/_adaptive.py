"""Synthetic records: marginals of any width, selected round by round where the law so far errs most (AIM).

    1. all one-way tables, with noise of whole numbers; a law is fitted to them (`_law_fit`), if that is asked for
       of groups of categories (`_selection`);
    2. round by round: an exponential mechanism selects a marginal r by the score

           w_r (|table_r - expected_r|_1 - sqrt(2/pi) sigma cells_r),    w_r = sum over s in the workload of |r and s|,

       its table is measured with noise of deviation sigma, and the law is fitted anew to all tables;
    3. if the law moved by less than the noise would have moved it, sigma is halved and choices sharpen by two; the last
       round has what is left of the privacy loss. Laws between rounds are the ones nearest to the noisy tables, found
       roughly from the law before; the last one is where the estimated error to the true tables is least.

Source: R. McKenna, B. Mullins, D. Sheldon and G. Miklau (2022), AIM: an adaptive and iterative mechanism for
differentially private synthetic data, PVLDB 15(11), algorithms 1 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction

import numpy as np

from quincunx import _check, _core
from quincunx._categories import CategoriesLike
from quincunx._types import ByLabel, Floats, Ints
from quincunx.posterior import _account
from quincunx.posterior._junction_tree import Columns, cells, downward_closure, eliminated
from quincunx.posterior._law_fit import Fitted, NoisyMarginal, fit_law, nearest_law
from quincunx.posterior._measuring import (
    MOST_WEIGHT,
    PARTS,
    CountNoise,
    total_of,
)
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._selection import MarginalSelection, ReleaseJob, rare_groups, regrouped, shares, summed
from quincunx.posterior._synthetic import Groups, SyntheticBayesNet, group_of, of_conditionals
from quincunx.privacy import PrivacyGuarantee, Release, ReplaceOne, _rational
from quincunx.privacy._curves import Ranged, Zcdp
from quincunx.privacy._discrete_gaussian import largest_rho, variance_for
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import marked, seed_words

#: Rounds per column at the most, and the share of a round's privacy loss that is its noise's: those of the source.
ROUNDS, SHARE = 16, Fraction(9, 10)
#: Fits between rounds end where a step lowers their sum by less than this share of it.
ROUGH = 1e-2
#: Cells of all categories, as many times `max_cells`.
EXPANDED = 16


class _Round:
    """What a round spends: the noise of its table, and the exponent of its choice."""

    def __init__(self, noise: CountNoise, exponent: Fraction, reach: int) -> None:
        self.noise, self.exponent, self.reach = noise, exponent, reach

    @property
    def rho(self) -> Fraction:
        return self.noise.rho + Ranged(self.exponent * 2 * self.reach).rho

    @classmethod
    def spending(cls, rho: Fraction, moved: int, reach: int) -> _Round:
        """Return the round that spends so much, or a little less."""
        noise = CountNoise(None, variance_for(SHARE * rho, moved), moved)
        level = math.sqrt(8 * (1 - SHARE) * rho) * (1 - 2.0**-50)
        return cls(noise, _rational.exponent(level, 2 * reach), reach)

    def sharper(self) -> _Round:
        """Return the next round after one that taught nothing: half the deviation, twice the exponent."""
        assert self.noise.variance is not None
        rho = self.noise.cells / (2 * self.noise.variance)
        return _Round(
            CountNoise(None, variance_for(4 * rho, self.noise.cells), self.noise.cells), 2 * self.exponent, self.reach
        )


@posterior_doc
class AdaptiveMarginals(MarginalSelection):
    """Selection and release of marginals round by round, from which `release` makes a law of synthetic records (AIM).

    Parameters
    ----------
    epsilon : float
        Privacy level of everything together, > 0 and at most 1e6.
    delta : float
        In (0, 1). The noise is discrete Gaussian and the account zero-concentrated, of the largest level that is
        (epsilon, delta)-private; it is spent adaptively, as a privacy filter allows.
    {declared}
    workload : iterable of collections of columns, optional
        The marginals that matter: they and those within them are candidates. By default all pairs.
    {protected}
    max_cells : int
        Cells that the tables of the law may have together, when all of the privacy loss is spent; before, the same
        share of them. Time of a fit and memory grow with it. Categories that are one group have one cell here; of all
        categories the network may have 16 times as many.
    rare_threshold : float > 0, optional
        Categories whose noisy count is at first below so many deviations of the noise are one group in the tables of
        several columns, 3 in `MarginalTree`; by default all are told apart.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        Of a release, to be spent before it.
    rho : float
        Its zero-concentrated level.
    candidates : tuple of tuples of columns
        The marginals that may be selected.

    Raises
    ------
    ValueError, TypeError
        If an argument lies outside its domain, `delta` is 0, or the noise would have a variance above 1e10.
    TooLargeError
        If a marginal of the workload would be larger than `max_cells`.

    Notes
    -----
    The level of all rounds is fixed before; what a round spends depends on what was released. Zero-concentrated levels
    add up for such rounds as for those fixed before, as long as their sum stays below the level [2]_: it is compared
    in exact fractions. Scores are whole numbers, of 1/1024 of a record, and the choice is by whole numbers.

    Of a group of rare categories [3]_ each has the share that the tables of its column alone say: those are measured of
    all categories. Groups spend nothing, for what was released decides. They are for columns of many categories that
    hardly occur: of census records the first noise hides categories that matter, and errors are larger below epsilon 1,
    and 8 % smaller at 3.

    References
    ----------
    .. [1] R. McKenna, B. Mullins, D. Sheldon and G. Miklau (2022), AIM: an adaptive and iterative mechanism for
       differentially private synthetic data, PVLDB 15(11).
    .. [2] J. Whitehouse, A. Ramdas, R. Rogers and S. Wu (2023), Fully-adaptive composition in differential privacy,
       ICML.
    .. [3] R. McKenna, G. Miklau and D. Sheldon (2021), Winning the NIST contest: a scalable and general approach to
       differentially private synthetic data, J. Privacy and Confidentiality 11(3).

    Examples
    --------
    >>> from quincunx.posterior import AdaptiveMarginals
    >>> aim = AdaptiveMarginals(1.0, 1e-6, domain={"age": 10, "sex": ["f", "m"], "job": 12})
    >>> aim.candidates[-1], aim.guarantee.epsilon
    (('sex', 'job'), 1.0)
    """

    _UNIT = "privacy loss"

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        domain: ByLabel[CategoriesLike],
        workload: Iterable[Iterable[Hashable]] | None = None,
        relation: Relation = _account.ONE,
        max_cells: int = 2**17,
        rare_threshold: float | None = None,
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True)
        if level > 1e6:  # exponents of choices double with the rounds, and fit 64 bits
            raise ValueError(f"`epsilon` must be at most 1e6, got {level:g}")
        failure = _check.real(delta, "delta")
        if not 0 < failure < 1:
            raise ValueError(f"`delta` must be in (0, 1): the rounds are too many for a pure guarantee, got {failure}")
        super().__init__(domain, workload, relation)
        self.max_cells = _check.whole(max_cells, "max_cells", minimum=1, maximum=2**30)
        self.rare_threshold = (
            None if rare_threshold is None else _check.real(rare_threshold, "rare_threshold", positive=True)
        )
        scopes = self._scopes
        for scope in scopes:
            names = tuple(self.columns[i] for i in scope)
            _check.room(8 * cells(self._sizes, [scope]), f"the marginal of {names}", 8 * self.max_cells)
        if (least := sum(self._sizes)) > self.max_cells:
            raise ValueError(
                f"`max_cells` must be at least {least}, for the tables of one column, got {self.max_cells}"
            )
        self._candidates = downward_closure([*scopes, *((i,) for i in range(len(self.columns)))])
        self.candidates = tuple(tuple(self.columns[i] for i in scope) for scope in self._candidates)
        raw = [sum(len({*scope} & {*wide}) for wide in scopes) for scope in self._candidates]
        most = max(1, *raw)
        self._weights = [max(1, round(weight * min(1, MOST_WEIGHT / most))) for weight in raw]
        self._level = Fraction(largest_rho(level, failure))
        self._first = _Round.spending(
            self._level / (ROUNDS * len(self.columns)), self._moved, self._moved * PARTS * max(self._weights)
        )
        self.rho = float(self._level)
        self.guarantee: PrivacyGuarantee = guarantee_of(
            Zcdp(self._level), self.relation, Fraction(failure), epsilon=Fraction(level)
        )

    def __repr__(self) -> str:
        return f"AdaptiveMarginals({len(self.columns)} columns, {len(self.candidates)} candidates, {self.guarantee})"

    def _release(self, job: ReleaseJob) -> SyntheticBayesNet:
        return _Release(self, job).run()


class _Release:
    """One release: the true tables, and all that is known of them."""

    def __init__(self, aim: AdaptiveMarginals, job: ReleaseJob) -> None:
        self.aim = aim
        self.columns, self.rows, self.seed, self.report = job
        _check.room(8 * cells(aim._sizes, aim._candidates), "the tables of the candidates")
        #: Categories that are distinguished in tables of several columns; those of one column have all.
        self.groups: list[Groups] = [tuple((code,) for code in range(size)) for size in aim._sizes]
        self.shape = list(aim._sizes)
        self.true: dict[Columns, Ints] = {}
        self.known: dict[Columns, NoisyMarginal] = {}
        #: What was released of each, the last time with the least noise.
        self.released: dict[Columns, tuple[Ints, CountNoise]] = {}
        #: Cells of the tree with one more marginal.
        self.sizes: dict[Columns, int] = {}
        self.spent, self.step = Fraction(0), 0

    def run(self) -> SyntheticBayesNet:
        aim, now = self.aim, self.aim._first
        for place in range(len(aim.columns)):
            self.measure((place,), now.noise)
        ones = [(values, noise.spread) for values, noise in self.released.values()]
        self.total = self.rows if isinstance(aim.relation, ReplaceOne) else total_of(ones)
        if aim.rare_threshold is not None:
            self.group([rare_groups(*one, aim.rare_threshold) for one in ones])
        fitted = self.fit(None)
        last = False
        while not last:
            left = aim._level - self.spent
            if last := left <= 2 * now.rho:
                now = _Round.spending(left, aim._moved, now.reach)
            # The filter: it holds by what rounds are, and is looked at all the same.
            if self.spent + now.rho > aim._level:
                raise AssertionError("a round must fit into what is left of the level")
            chosen = self.choose(fitted, now)
            self.measure(chosen, now.noise)
            before, fitted = self.expected(chosen, fitted), self.fit(fitted)
            moved = float(np.abs(self.expected(chosen, fitted) - before).sum())
            if moved <= _expected_error(now.noise, before.size):
                now = now.sharper()
        fitted = fit_law(self.shape, self.tables(), self.total, heard=self.tell)
        guarantee = marked(aim.guarantee, self.seed)
        marginals = {
            tuple(aim.columns[i] for i in scope): Release(values, guarantee, noise=noise.law)
            for scope, (values, noise) in self.released.items()
        }
        parts = [self.shares(place, fitted) for place in range(len(self.groups))]
        found = fitted.law.conditionals()
        return of_conditionals(found, aim._net, guarantee, self.total, marginals, "aim", self.groups, parts)

    def group(self, groups: list[Groups]) -> None:
        """Take categories together; records are seen by groups from here on, but for tables of one column."""
        self.groups, self.shape = groups, [len(each) for each in groups]
        self.columns, self.sizes = regrouped(groups, self.columns), {}

    def table(self, scope: Columns) -> Ints:
        """Return the true table of some columns; those of one column are counted before categories are grouped."""
        if scope not in self.true:
            shape = [self.shape[i] for i in scope]
            flat = np.ravel_multi_index(tuple(self.columns[list(scope)]), shape)
            self.true[scope] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        return self.true[scope]

    def measure(self, scope: Columns, noise: CountNoise) -> None:
        """Release a table; one that was released before is known by both."""
        self.spent += noise.rho
        true = self.table(scope)
        self.step += 1
        values = noise.add(true.reshape(-1), seed_words(self.seed, self.step)).reshape(true.shape)
        self.released[scope] = values, noise
        found = NoisyMarginal(scope, values.astype(np.float64), noise.spread)
        if scope not in self.known:
            self.sizes = {}
        self.known[scope] = found if scope not in self.known else self.known[scope].and_another(found)

    def fit(self, before: Fitted | None) -> Fitted:
        self.tell()
        start = None if before is None else before.factors
        return nearest_law(self.shape, self.tables(), self.total, start=start, share=ROUGH, heard=self.tell)

    def tables(self) -> list[NoisyMarginal]:
        """Return what is known, all of it of groups."""
        found = []
        for table in self.known.values():
            if len(table.columns) == 1:
                groups = self.groups[table.columns[0]]
                counts = summed(groups, np.ones(table.values.size))
                table = NoisyMarginal(table.columns, summed(groups, table.values), table.variance * counts)
            found.append(table)
        return found

    def shares(self, place: int, fitted: Fitted) -> Floats:
        """Return the share that each category of a column has of its group."""
        totals = self.total * fitted.law.marginal((place,))
        return shares(self.groups[place], self.known[place,].values, totals)

    def expected(self, scope: Columns, fitted: Fitted) -> Floats:
        """Return the expected number of records in each cell of a table."""
        found: Floats = self.total * fitted.law.marginal(scope)
        if len(scope) == 1:
            found = found[group_of(self.groups[scope[0]])] * self.shares(scope[0], fitted)
        return found

    def tell(self) -> None:
        if self.report is not None:
            self.report(int(1000 * self.spent / self.aim._level), 1000)

    def choose(self, fitted: Fitted, now: _Round) -> Columns:
        """Select a marginal by the exponential mechanism, among those whose tree is small enough."""
        aim = self.aim
        self.spent += Ranged(now.exponent * 2 * now.reach).rho
        room = max(float((self.spent + now.noise.rho) / aim._level) * aim.max_cells, self.size(()))
        scopes, scores = [], []
        for scope, weight in zip(aim._candidates, aim._weights, strict=True):
            # A column of one group says nothing beside others.
            if (len(scope) == 1 or all(self.shape[i] > 1 for i in scope)) and self.size(scope) <= room:
                scopes.append(scope)
                scores.append(weight * self.score(scope, fitted, now.noise))
            self.tell()
        self.step += 1
        values = np.array(scores, dtype=np.int64)
        numbers = now.exponent.numerator, now.exponent.denominator
        return scopes[int(_core.choose(values, len(values), *numbers, seed_words(self.seed, self.step))[0])]

    def size(self, scope: Columns) -> int:
        """Return the cells of the tree that has one more marginal, or an `EXPANDED`th of those of all categories."""
        if scope not in self.sizes:
            cliques = eliminated(self.shape, [*self.known, scope])
            self.sizes[scope] = max(cells(self.shape, cliques), cells(self.aim._sizes, cliques) // EXPANDED)
        return self.sizes[scope]

    def score(self, scope: Columns, fitted: Fitted, noise: CountNoise) -> int:
        """Return by how much a table errs beyond the noise, in parts of a record."""
        true = self.table(scope)
        expected = np.rint(PARTS * self.expected(scope, fitted)).astype(np.int64)
        return int(np.abs(PARTS * true - expected).sum()) - round(PARTS * _expected_error(noise, true.size))


def _expected_error(noise: CountNoise, count: int) -> float:
    """Return the expected sum of absolute errors of so many cells."""
    return math.sqrt(2 * noise.spread / math.pi) * count
