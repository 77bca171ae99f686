"""Synthetic records: marginals of any width, selected round by round where the law so far errs most (AIM).

    1. all one-way tables of the workload's columns, with noise of whole numbers; a law is fitted to them (`_law_fit`);
    2. round by round: an exponential mechanism selects a marginal r by the score

           w_r (|table_r - expected_r|_1 - sqrt(2/pi) sigma cells_r),    w_r = sum over s in the workload of |r and s|,

       its table is measured with noise of deviation sigma, and the law is fitted anew to all tables;
    3. if the law moved by less than the noise would have moved it, sigma is halved and choices sharpen by two; the last
       round has what is left of the privacy loss.

Source: R. McKenna, B. Mullins, D. Sheldon and G. Miklau (2022), AIM: an adaptive and iterative mechanism for
differentially private synthetic data, PVLDB 15(11), algorithms 1 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._categories import CategoriesLike
from quincunx._progress import Progress, reporting
from quincunx._types import ByLabel, Ints
from quincunx.posterior import _account
from quincunx.posterior._junction_tree import Columns, cells, downward_closure, eliminated
from quincunx.posterior._law_fit import Fitted, NoisyMarginal, fit_law
from quincunx.posterior._measuring import (
    MOST_WEIGHT,
    PARTS,
    CountNoise,
    scopes_of,
    total_of,
)
from quincunx.posterior._network import DiscreteBayesNet
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Nodes, Records
from quincunx.posterior._synthetic import SyntheticBayesNet, of_law
from quincunx.privacy import PrivacyGuarantee, Release, ReplaceOne, _rational
from quincunx.privacy._curves import Ranged, Zcdp
from quincunx.privacy._discrete_gaussian import largest_rho, variance_for
from quincunx.privacy._guarantee import guarantee_of
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import Guaranteed, marked, seed_words

#: Rounds per column at the most, and the share of a round's privacy loss that is its noise's: those of the source.
ROUNDS, SHARE = 16, Fraction(9, 10)
#: Fits between rounds end where a step lowers their sum by less than this share of it.
ROUGH = 1e-2


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
class AdaptiveMarginals(Guaranteed):
    """Selection and release of marginals round by round, from which `release` makes a law of synthetic records (AIM).

    Parameters
    ----------
    epsilon : float
        Privacy level of everything together, > 0.
    delta : float
        In (0, 1). The noise is discrete Gaussian and the account zero-concentrated, of the largest level that is
        (epsilon, delta)-private; it is spent adaptively, as a privacy filter allows.
    domain : mapping of column to int or sequence
        What each column may hold, declared and never inferred from data: a number k for the codes 0..k-1, or labels.
        Numbers are binned before, at edges that are chosen without looking at the data.
    workload : iterable of collections of columns, optional
        The marginals that matter: they and those within them are candidates. By default all pairs.
    relation : ReplaceOne or AddRemove
        Who is protected. With `ReplaceOne` the number of records is public, and used; with `AddRemove` it is known by
        the noisy tables alone.
    max_cells : int
        Cells that the tables of the law may have together, when all of the privacy loss is spent; before, the same
        share of them. Time of a fit and memory grow with it.

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

    References
    ----------
    .. [1] R. McKenna, B. Mullins, D. Sheldon and G. Miklau (2022), AIM: an adaptive and iterative mechanism for
       differentially private synthetic data, PVLDB 15(11).
    .. [2] J. Whitehouse, A. Ramdas, R. Rogers and S. Wu (2023), Fully-adaptive composition in differential privacy,
       ICML.

    Examples
    --------
    >>> from quincunx.posterior import AdaptiveMarginals
    >>> aim = AdaptiveMarginals(1.0, 1e-6, domain={"age": 10, "sex": ["f", "m"], "job": 12})
    >>> aim.candidates[-1], aim.guarantee.epsilon
    (('sex', 'job'), 1.0)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        domain: ByLabel[CategoriesLike],
        workload: Iterable[Iterable[Hashable]] | None = None,
        relation: Relation = _account.ONE,
        max_cells: int = 2**17,
    ) -> None:
        level = _check.real(epsilon, "epsilon", positive=True)
        failure = _check.real(delta, "delta")
        if not 0 < failure < 1:
            raise ValueError(f"`delta` must be in (0, 1): the rounds are too many for a pure guarantee, got {failure}")
        self.relation = _account.relation_of(relation)
        self.max_cells = _check.whole(max_cells, "max_cells", minimum=1, maximum=2**30)
        self._net = DiscreteBayesNet([], domain)
        self.columns: Nodes = self._net.nodes
        self._sizes = list(self._net._sizes.values())
        scopes = scopes_of(self.columns, workload)
        for scope in scopes:
            if (count := cells(self._sizes, [scope])) > self.max_cells:
                names = tuple(self.columns[i] for i in scope)
                _check.room(8 * count, f"the marginal of {names}", 8 * self.max_cells)
        if (least := sum(self._sizes)) > self.max_cells:
            raise ValueError(
                f"`max_cells` must be at least {least}, for the tables of one column, got {self.max_cells}"
            )
        self._candidates = downward_closure([*scopes, *((i,) for i in range(len(self.columns)))])
        self.candidates = tuple(tuple(self.columns[i] for i in scope) for scope in self._candidates)
        raw = [sum(len({*scope} & {*wide}) for wide in scopes) for scope in self._candidates]
        most = max(1, *raw)
        self._weights = [max(1, round(weight * min(1, MOST_WEIGHT / most))) for weight in raw]
        self._moved = 2 if isinstance(self.relation, ReplaceOne) else 1
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

    def release(
        self, data: Records, *, insecure_seed: int | None = None, progress: Progress = None
    ) -> SyntheticBayesNet:
        """Select and measure marginals of private records, and fit a law to them.

        Parameters
        ----------
        data : array_like, shape (n, n_columns), or DataFrame
            Records: a declared category of each column. A data frame may have more columns, which are not read.
        insecure_seed : int, optional
            Makes the release repeatable, for tests: the guarantee then says that it protects nobody.
        progress : bool or function, optional
            True for a bar, or a function of (done, total), in thousandths of the privacy loss.

        Returns
        -------
        SyntheticBayesNet
            With `sample`, `cpds`, `edges`, `marginals`, `guarantee`.

        Raises
        ------
        ValueError, TypeError
            If the data do not fit the domain, before anything is drawn, or there is no record though their number is
            public.
        TooLargeError
            If the tables of all candidates need more memory than there is.

        Examples
        --------
        >>> from quincunx.posterior import AdaptiveMarginals
        >>> aim = AdaptiveMarginals(3.0, 1e-6, domain={"a": 2, "b": 2})
        >>> made = aim.release([[0, 1], [1, 0]] * 300)
        >>> made.marginals["a", "b"].shape
        (2, 2)
        """
        codes, rows = self._net._data(data)
        if not rows and isinstance(self.relation, ReplaceOne):
            raise ValueError("`data` must hold at least one record, got none")
        columns = np.ascontiguousarray(codes.reshape(rows, len(self.columns)).T, dtype=np.int32)
        with reporting(progress, "privacy loss") as report:
            return _Release(self, columns, rows, insecure_seed, report).run()


class _Release:
    """One release: the true tables, and all that is known of them."""

    def __init__(
        self,
        aim: AdaptiveMarginals,
        columns: npt.NDArray[np.int32],
        rows: int,
        insecure_seed: int | None,
        report: Callable[[int, int], object] | None,
    ) -> None:
        self.aim, self.seed, self.report = aim, insecure_seed, report
        _check.room(8 * cells(aim._sizes, aim._candidates), "the tables of the candidates")
        self.columns, self.rows = columns, rows
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
            before, fitted = fitted.law.marginal(chosen), self.fit(fitted)
            moved = self.total * float(np.abs(fitted.law.marginal(chosen) - before).sum())
            if moved <= _expected_error(now.noise, before.size):
                now = now.sharper()
        tables = list(self.known.values())
        fitted = fit_law(aim._sizes, tables, self.total, start=fitted.factors, heard=self.tell)
        guarantee = marked(aim.guarantee, self.seed)
        marginals = {
            tuple(aim.columns[i] for i in scope): Release(values, guarantee, noise=noise.law)
            for scope, (values, noise) in self.released.items()
        }
        return of_law(fitted.law, aim._net, guarantee, self.total, marginals, "aim")

    def table(self, scope: Columns) -> Ints:
        """Return the true table of some columns."""
        if scope not in self.true:
            shape = [self.aim._sizes[i] for i in scope]
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
        tables = list(self.known.values())
        return fit_law(self.aim._sizes, tables, self.total, start=start, share=ROUGH, heard=self.tell)

    def tell(self) -> None:
        if self.report is not None:
            self.report(int(1000 * self.spent / self.aim._level), 1000)

    def choose(self, fitted: Fitted, now: _Round) -> Columns:
        """Select a marginal by the exponential mechanism, among those whose tree is small enough."""
        aim = self.aim
        self.spent += Ranged(now.exponent * 2 * now.reach).rho
        room = max(float((self.spent + now.noise.rho) / aim._level) * aim.max_cells, fitted.law.tree.cells)
        scopes, scores = [], []
        for scope, weight in zip(aim._candidates, aim._weights, strict=True):
            if self.size(scope) <= room:
                scopes.append(scope)
                scores.append(weight * self.score(scope, fitted, now.noise))
            self.tell()
        self.step += 1
        values = np.array(scores, dtype=np.int64)
        numbers = now.exponent.numerator, now.exponent.denominator
        return scopes[int(_core.choose(values, len(values), *numbers, seed_words(self.seed, self.step))[0])]

    def size(self, scope: Columns) -> int:
        """Return the cells of the tree that has one more marginal."""
        if scope not in self.sizes:
            self.sizes[scope] = cells(self.aim._sizes, eliminated(self.aim._sizes, [*self.known, scope]))
        return self.sizes[scope]

    def score(self, scope: Columns, fitted: Fitted, noise: CountNoise) -> int:
        """Return by how much a table errs beyond the noise, in parts of a record."""
        true = self.table(scope)
        expected = np.rint(fitted.law.marginal(scope) * (PARTS * self.total)).astype(np.int64)
        return int(np.abs(PARTS * true - expected).sum()) - round(PARTS * _expected_error(noise, true.size))


def _expected_error(noise: CountNoise, count: int) -> float:
    """Return the expected sum of absolute errors of so many cells."""
    return math.sqrt(2 * noise.spread / math.pi) * count
