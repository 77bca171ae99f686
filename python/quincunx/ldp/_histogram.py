"""Shares of categories from noisy categories."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
import numpy.typing as npt

from quincunx import _check, _tables
from quincunx._categories import Categories
from quincunx._inference import Floats, Variable, parameters
from quincunx._summary import Summary
from quincunx.ldp._column_sums import ColumnSums, SubsetSums
from quincunx.ldp._groups import Categories as Counted
from quincunx.ldp._groups import Group, Rows, Shares, Supports
from quincunx.ldp._model import PrivateModel
from quincunx.ldp._noise import Known, MechanismLike, codes, noise_of, refuse_different
from quincunx.ldp._problem import Block, populations
from quincunx.ldp._repeated import repeated
from quincunx.ldp._simulation import DataSet, generated, noisy, noisy_reports
from quincunx.ldp.priors import Dirichlet, LogNormal
from quincunx.privacy import Release
from quincunx.privacy._supports import SupportNoise
from quincunx.privacy.noise import (
    GeneralizedRandomizedResponseNoise,
    HadamardResponseNoise,
    LocalHashingNoise,
    MemoizedUnaryEncodingNoise,
    Noise,
    SubsetSelectionNoise,
    UnaryEncodingNoise,
)

#: Why sums over reports that support categories are not taken.
WHY_NOT = {
    LocalHashingNoise.kind: "hashes of three categories are not independent, so that the covariance has no short form",
    HadamardResponseNoise.kind: "there are no more different reports than indices, so that nothing is gained by sums",
}
OF_CATEGORIES = (UnaryEncodingNoise, GeneralizedRandomizedResponseNoise, SupportNoise)


def _many(released: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(released, (list, tuple))


@parameters
class HistogramModel(PrivateModel):
    """Shares of k categories released by a local protocol.

    Parameters
    ----------
    mechanism : optional
        The mechanism, where the data do not bring their own: UnaryEncoding, GeneralizedRandomizedResponse,
        SubsetSelection, LocalHashing or HadamardResponse; None for data without noise.
    data : {"rows", "patterns", "counts", "repeated"}
        What `fit` takes from unary encoding and subset selection: all rows of bits, their distinct rows with counts, or
        the column sums with the number of users, as other client libraries produce them. The last lose 2 to 13 % of the
        information of unary encoding; sums of subsets are taken as normal, and refused below 50 expected by chance.
        Reports of local hashing and Hadamard response are "rows", or "patterns" with counts.
        "repeated" is for several reports of each user: an array with an axis of them after that of the users, or a list
        of releases of the same users in the same order; reports that are missing are masked.
    categories : int or sequence, optional
        The categories, or their labels, where the mechanism does not say them: coordinates of ``theta``, and without
        noise what the data may hold.
    priors : dict, optional
        Of ``theta``, by default Dirichlet(1).
    {settings}

    Notes
    -----
    Fitted to a dictionary of groups, each has shares of its own, ``theta_g ~ Dirichlet(theta_concentration *
    theta_mean)``, and ``theta`` a row for each label, in sorted order. ``priors`` then has ``theta_mean``, by default
    Dirichlet(1), and ``theta_concentration``, LogNormal(3, 1.5).

    Rows with equal bits are one pattern, so that a gradient costs what the patterns do. The posterior density is
    log-concave for Dirichlet(a >= 1).

    Repeated reports of a user are independent given the category, and their likelihoods are multiplied, also where
    mechanisms differ; those of one permanent row of `MemoizedUnaryEncoding` are independent given the row, which is
    summed over: with B the law of c_j ones among r reports, ``P(all | v) = prod_j sum_b P(b | v == j) B(c_j | b)``
    [2]_. The row itself, or reports at another level, cannot be given beside them: two permanent rows of one law, which
    a user may have, cannot be told from one. Only how many reports support each category counts, so that users of whom
    that is the same are one pattern. A list of releases without ``data="repeated"`` is of different users.

    A report that a user did not make is masked, the whole of it. The likelihood is that of the user's other reports, as
    long as absence is ignorable: given those it depends neither on the category nor on what the missing report would
    have said [3]_. A user without any report tells nothing, and is counted; a release without any is refused. Who
    reported when is not protected by the mechanism.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha (2017), Locally differentially private protocols for frequency
       estimation, USENIX Security.
    .. [2] U. Erlingsson, V. Pihur and A. Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving ordinal
       response, CCS.
    .. [3] D. B. Rubin (1976), Inference and missing data, Biometrika 63.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.ldp import HistogramModel
    >>> from quincunx.privacy import UnaryEncoding
    >>> x = np.repeat([0, 1, 2], [700, 200, 100])
    >>> release = UnaryEncoding(1.0, 3).release(x, insecure_seed=1)
    >>> model = HistogramModel(random_state=0).fit(release)
    >>> bool(abs(model.posterior_mean_["theta"].sum() - 1) < 1e-9)
    True
    >>> drinks = UnaryEncoding(1.0, ["tea", "coffee", "mate"]).release(["tea"] * 70 + ["mate"] * 30, insecure_seed=1)
    >>> list(HistogramModel(random_state=0).fit(drinks).summary())
    ['theta[tea]', 'theta[coffee]', 'theta[mate]']

    Reports that users repeat narrow the posterior:

    >>> from quincunx.privacy import MemoizedUnaryEncoding
    >>> daily = MemoizedUnaryEncoding(1.0, 3.0, 3)
    >>> kept = daily.memoize(x, insecure_seed=1)
    >>> days = [daily.report(kept, insecure_seed=day) for day in range(2, 9)]
    >>> week = HistogramModel(data="repeated", random_state=0).fit(days)
    >>> one = HistogramModel(random_state=0).fit(days[0])
    >>> bool((week.posterior_sd_["theta"] < one.posterior_sd_["theta"]).all())
    True
    """

    _known: ClassVar[Known] = {
        MemoizedUnaryEncodingNoise: ("categories", "one", "zero", "flip"),
        UnaryEncodingNoise: ("categories", "one", "zero"),
        GeneralizedRandomizedResponseNoise: ("categories", "other"),
        SubsetSelectionNoise: ("categories", "size", "miss"),
        LocalHashingNoise: ("categories", "buckets", "miss"),
        HadamardResponseNoise: ("categories", "blocks", "miss"),
    }
    _prior_names = ("theta", "theta_mean", "theta_concentration")
    _with_populations = True
    #: How many reports of each user are simulated where they are repeated.
    _simulated_reports: ClassVar[int] = 3

    data: str = "rows"
    categories: int | Sequence[object] | None = None

    def fit(
        self,
        released: npt.ArrayLike,
        y: None = None,
        *,
        counts: npt.ArrayLike | None = None,
        n: int | None = None,
        mechanism: MechanismLike = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior.

        Parameters
        ----------
        released : Release, array_like, Summary or list of these
            Rows of bits, patterns or column sums from unary encoding; categories from generalized randomized response,
            or without noise, one by one. Lists, summaries and dictionaries of groups are taken as in
            `GaussianModel.fit`; with the latter `counts` and `n` are dictionaries, too. With ``data="repeated"`` an
            array of shape (n, reports, ...), where `...` is the shape of one report, or a list of releases of the same
            n users; a masked array, or `Release.masked`, where users missed rounds.
        y : None
            Not used.
        counts : array_like of int, optional
            With ``data="patterns"``: how often each row occurs; a list of these for groups.
        n : int, optional
            With ``data="counts"``: the number of users; a list for groups. Rows of bits need none: they are summed.
        mechanism : optional
            Goes before the release's own and the constructor's.
        {fitted}
        """
        return self._fit(self._groups(released, mechanism, False, counts=counts, n=n), executor)

    def summarize(
        self,
        released: npt.ArrayLike,
        *,
        counts: npt.ArrayLike | None = None,
        n: int | None = None,
        mechanism: MechanismLike = None,
        unsafe: bool = False,
    ) -> Summary:
        """Return what a fit needs of released categories, so that parts of the users can be added.

        Counts of categories; of unary encoding the different rows and how often each occurs, of which there may be as
        many as users: with ``data="counts"`` the column sums alone.

        Parameters
        ----------
        released, counts, n, mechanism
            As in `fit`.
        {summarized}
        """
        return self._summed(self._groups(released, mechanism, False, counts=counts, n=n), unsafe)

    def _summarized_as(self) -> str:
        return f"HistogramModel(data={'counts' if self.data == 'counts' else 'rows'!r})"

    def partial_fit(
        self,
        released: npt.ArrayLike,
        y: None = None,
        *,
        counts: npt.ArrayLike | None = None,
        n: int | None = None,
        mechanism: MechanismLike = None,
        executor: Executor | None = None,
    ) -> Self:
        """Infer the posterior from what was fitted before and more released categories.

        Parameters
        ----------
        released, counts, n, mechanism
            As in `fit`: of users that it has not seen.
        y : None
            Not used.
        {more}
        """
        return self._fit_more(self.summarize(released, counts=counts, n=n, mechanism=mechanism), executor)

    def log_likelihood(
        self,
        released: npt.ArrayLike,
        *,
        counts: npt.ArrayLike | None = None,
        n: int | None = None,
        gradient: bool = False,
        mechanism: MechanismLike = None,
        **parameters: npt.ArrayLike,
    ) -> float | tuple[float, dict[str, float | Floats]]:
        """Return the log-likelihood, the sum over users; no fit is needed.

        Parameters
        ----------
        released, counts, n, mechanism
            As in `fit`.
        gradient : bool
            Whether derivatives are wanted too; they hold up to a common constant, for theta sums to 1.
        {total}
        """
        groups = self._groups(released, mechanism, True, counts=counts, n=n)
        return self._log_likelihood(groups, gradient, parameters)

    def log_likelihoods(
        self, released: npt.ArrayLike, *, counts: npt.ArrayLike | None = None, mechanism: MechanismLike = None
    ) -> Floats:
        """Return the log-likelihood of each user at each draw of the fitted posterior.

        Parameters
        ----------
        released, counts, mechanism
            As in `fit`, of the users of the fit or of others; not column sums.

        {each}

        Raises
        ------
        ValueError
            With ``data="counts"``: a sum has no likelihood of one user.
        """
        if self.data == "counts":
            raise ValueError('`data` must not be "counts": a sum over users has no likelihood of one of them')
        return self._log_likelihoods(self._users(released, mechanism, counts=counts))

    def _told(self, released: npt.ArrayLike, mechanism: object, *, among: Categories | None, **_: Any) -> npt.ArrayLike:  # type: ignore[override]
        if self.data == "repeated":
            return released  # of which tallies ask nothing
        return self._codes(released, self._noise(released, mechanism), among)

    def _declared(self, noise: Noise | None, among: Categories | None) -> Categories | None:
        """Return the categories of what was released, by the names of the model where they have none of their own."""
        own = None if self.categories is None else Categories.of(self.categories, "categories", maximum=2**20)
        known = noise.declared if isinstance(noise, OF_CATEGORIES) else among
        if own is None or known is None:
            return known if own is None else own
        if len(own) != len(known) or (own.labels is not None and known.labels is not None and own != known):
            raise ValueError(f"`categories` must be those of the mechanism, {known.declared}, got {own.declared}")
        return known if own.labels is None else own

    def _codes(self, released: npt.ArrayLike, noise: Noise | None, among: Categories | None) -> npt.ArrayLike:
        if noise is not None:
            return codes(released, noise)
        declared = self._declared(None, among)
        return _check.counts(released, "released") if declared is None else declared.encode(released, "released")

    def _split(
        self, released: npt.ArrayLike, mechanism: object, **data: Any
    ) -> list[tuple[npt.ArrayLike, dict[str, Any]]]:
        """Return what each group of users released; raw categories beside releases are among those of these."""
        if self.data == "repeated" and not (_many(released) and all(isinstance(part, Summary) for part in released)):
            return [(released, data | {"among": None})]
        several = super()._split(released, mechanism, **data)
        laws = [part.noise for part, _ in several if isinstance(part, Release)] if len(several) > 1 else []
        known = [law.declared for law in laws if isinstance(law, OF_CATEGORIES)]
        return [(part, own | {"among": max(known, key=len, default=None)}) for part, own in several]

    def _group(
        self,
        released: npt.ArrayLike,
        mechanism: object,
        exact: bool,
        counts: npt.ArrayLike | None = None,
        n: int | None = None,
        among: Categories | None = None,
    ) -> Group:
        form = _check.one_of(self.data, "data", ("rows", "patterns", "counts", "repeated"))
        for name, given, own in (("counts", counts, "patterns"), ("n", n, "counts")):
            if given is not None and form != own:
                raise TypeError(f'`{name}` must be None but with data="{own}", got {given!r:.40} with data="{form}"')
        if form == "repeated":
            return self._repeated(released, mechanism)
        noise = self._noise(released, mechanism)
        declared = self._declared(noise, among)
        labels = None if declared is None or isinstance(declared.declared, int) else declared.declared
        if not isinstance(noise, (UnaryEncodingNoise, SupportNoise)):
            if counts is not None or n is not None or (form == "counts" and not isinstance(released, Release)):
                raise ValueError(f'`data` must be "rows" for categories one by one, which are counted, got "{form}"')
            found = np.asarray(self._codes(released, noise, among))
            if found.ndim != 1:
                raise ValueError(f"`released` must be a sequence of categories, got shape {found.shape}")
            k = max(int(found.max(initial=0)) + 1, 2) if declared is None else len(declared)
            if k > 2**20:
                raise ValueError(f"`released` must hold categories below 2**20, got {k - 1}")
            chances = (1.0, 0.0)
            if isinstance(noise, GeneralizedRandomizedResponseNoise):
                chances = (noise.keep_probability, noise.other_probability)
            return Counted(tuple(map(float, np.bincount(found, minlength=k))), *chances, labels=labels)
        assert declared is not None
        k, p, q = len(declared), noise.one_probability, noise.zero_probability
        if isinstance(noise, SupportNoise):
            if form == "counts" and isinstance(noise, SubsetSelectionNoise):
                sums, users = self._column_sums(declared.columns(released, "released"), n, k, noise.size)
                return SubsetSums(sums, users, p, noise.size, labels=labels)
            if form == "counts":
                raise ValueError(f'`data` must be "rows" or "patterns" for {noise.kind}: {WHY_NOT[noise.kind]}')
            rows = noise.supports(released, "released")
            if rows.ndim != 2:
                raise ValueError(f"`released` must hold one report for each user, got shape {np.shape(released)}")
            weights = self._weights(counts, len(rows))
            return Supports(np.ascontiguousarray(rows), weights, noise.ratio, noise.log_outside, labels=labels)
        if form == "counts":
            sums, users = self._column_sums(declared.columns(released, "released"), n, k)
            return ColumnSums(sums, users, p, q, labels=labels)
        rows = _check.categories(declared.columns(released, "released"), "released", 2)
        if rows.ndim != 2 or rows.shape[1] != k:
            hint = '; several reports of each user need data="repeated"' if rows.ndim == 3 else ""
            raise ValueError(f"`released` must have shape (n, {k}), got {rows.shape}{hint}")
        return Rows(np.ascontiguousarray(rows, dtype=np.uint8), self._weights(counts, len(rows)), p, q, labels=labels)

    def _column_sums(
        self, released: npt.ArrayLike, n: int | None, k: int, size: int | None = None
    ) -> tuple[tuple[float, ...], float]:
        """Return column sums, also of rows of bits, and of how many users; of subsets where these have a size."""
        sums = _check.counts(released, "released")
        if sums.ndim == 2 and n is None:
            bits = _check.categories(released, "released", 2)
            n, sums = len(bits), bits.sum(axis=0)
        if n is None:
            raise TypeError("`n`, the number of users, must be given with column sums")
        users = _check.whole(n, "n", maximum=2**53)
        if sums.shape != (k,):
            raise ValueError(f"`released` must have shape ({k},), got {sums.shape}")
        if size is not None and sums.sum() != users * size:
            raise ValueError(f"`released` must sum to n times {size}, as {users} subsets do, got {sums.sum()}")
        return tuple(map(float, sums)), float(users)

    def _repeated(self, released: npt.ArrayLike, mechanism: object) -> Group:
        """Return users of whom each made several reports."""
        parts: list[Any] = [released]
        if _many(released) and any(isinstance(part, (Release, Summary, np.ndarray)) for part in released):
            parts = list(released)
            if not all(isinstance(part, Release) for part in parts):
                found = sorted({type(part).__name__ for part in parts})
                raise TypeError(
                    "`released` must be an array of shape (n, reports, ...), or a list of releases alone, got a list "
                    f"of {found}: np.stack(arrays, axis=1) (of masked ones np.ma.stack) has the reports of each user"
                )
        users = {axes[0].labels for part in parts if (axes := _tables.axes(part))} - {None}
        if len(users) > 1:
            raise ValueError("`released` must be of the same users in one order, got rows whose labels are not")
        own = self.mechanism, self._known, type(self).__name__
        laws = [noise_of(part, mechanism, *own, masked=True) for part in parts]
        declared = [self._declared(noise, None) for noise in laws]
        labels = {each.declared for each in declared if each is not None and not isinstance(each.declared, int)}
        refuse_different(labels, "released", "the same categories")
        known = []
        for part, noise, among in zip(parts, laws, declared, strict=True):
            if noise is None or among is None:
                raise ValueError('`mechanism` must be given with data="repeated" where `released` is no Release')
            known.append((part, noise, among))
        return repeated(known, labels.pop() if labels else None)

    def _weights(self, counts: npt.ArrayLike | None, number: int) -> Floats | None:
        """Return how often each of several reports occurs; None where each is a user's."""
        if self.data != "patterns":
            return None
        if counts is None:
            raise TypeError("`counts` must be given with patterns")
        weights = _check.counts_as_floats(counts, "counts")
        if weights.shape != (number,):
            raise ValueError(f"`counts` must have shape ({number},), got {weights.shape}")
        return weights

    def _categories(self, groups: Sequence[Group]) -> Categories:
        found = {
            Categories(group.size if group.labels is None else group.labels)
            for group in groups
            if isinstance(group, Shares)
        }
        if len(found) != 1:
            shown = sorted(str(each.declared) for each in found)
            raise ValueError(f"`released` must have the same categories throughout, got {shown}")
        return found.pop()

    def _variables(self, groups: Sequence[Group]) -> tuple[Variable, ...]:
        found = self._categories(groups)
        labels = None if isinstance(found.declared, int) else found.declared
        k, among = len(found), tuple(populations(groups))
        if not among:
            return (Variable("theta", (k,), ("category",), labels=labels),)
        return (
            Variable("theta_mean", (k,), ("category",), labels=labels),
            Variable("theta_concentration"),
            Variable("theta", (len(among), k), ("group", "category"), labels=among),
        )

    def _blocks(self, groups: Sequence[Group]) -> list[Block]:
        k, among = len(self._categories(groups)), populations(groups)
        if k < 2:
            raise ValueError(f"`released` must have at least 2 categories, got {k}")
        self._refuse_priors(("theta",) if among else ("theta_mean", "theta_concentration"), bool(among))
        shares = self._shares("theta_mean" if among else "theta", k)
        if not among:
            return [Block("simplex", "dirichlet", shares)]
        strength = self._scalar("theta_concentration", "positive", LogNormal(3, 1.5))
        return [Block("groups of shares", strength.prior, [float(len(among)), float(k), *shares, *strength.numbers])]

    def _shares(self, name: str, k: int) -> list[float]:
        """Return the concentrations of the prior of shares."""
        prior = self._prior(name, Dirichlet(1.0))
        if not isinstance(prior, Dirichlet):
            raise ValueError(f"`priors[{name!r}]` must be a Dirichlet, got {prior!r}")
        return prior.concentrations(k)

    def _simulate(self, rng: np.random.Generator, n: int, groups: int = 0) -> DataSet:
        noise = self._noise(None, None)
        if noise is None:
            raise ValueError("`mechanism` must be given to simulate from")
        assert isinstance(noise, OF_CATEGORIES)
        k = len(noise.declared)
        if groups:
            mean = rng.dirichlet(self._shares("theta_mean", k))
            strength = generated(self._prior("theta_concentration", LogNormal(3, 1.5)), rng)
            theta = rng.dirichlet(strength * mean, groups)
            told = [self._told_of(noise, own, rng, n) for own in theta]
            among: dict[str, float | Floats] = {"theta_mean": mean, "theta_concentration": strength, "theta": theta}
            named = {name: {g: each[name] for g, (_, each) in enumerate(told)} for name in told[0][1]}
            return among, ({g: reports for g, (reports, _) in enumerate(told)},), named
        theta = rng.dirichlet(self._shares("theta", k))
        reports, own = self._told_of(noise, theta, rng, n)
        return {"theta": theta}, (reports,), own

    def _told_of(
        self, noise: Noise, theta: Floats, rng: np.random.Generator, n: int
    ) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        """Return what n users with these shares release, and what `fit` is told of it."""
        assert isinstance(noise, OF_CATEGORIES)
        k = len(noise.declared)
        x = rng.choice(k, n, p=theta)
        if self.data == "repeated":
            return noisy_reports(noise, x, self._simulated_reports, rng), {}
        rows = noisy(noise, x, rng)
        if isinstance(noise, (UnaryEncodingNoise, SubsetSelectionNoise)) and self.data == "counts":
            return rows.sum(axis=0), {"n": n}
        if isinstance(noise, (UnaryEncodingNoise, SupportNoise)) and self.data == "patterns":
            patterns, counts = np.unique(rows, axis=0, return_counts=True)
            return patterns, {"counts": counts}
        return rows, {}
