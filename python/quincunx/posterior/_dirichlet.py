"""Categories with a trimmed Dirichlet prior, or a tree of trimmed Beta priors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Array, Floats
from quincunx.posterior import _account
from quincunx.posterior._account import ONE
from quincunx.posterior._beta import BetaBernoulli
from quincunx.posterior._parts import posterior_doc
from quincunx.privacy import PrivacyGuarantee, ReplaceOne
from quincunx.privacy._relations import Relation

PRIORS = ("dirichlet", "beta_tree")


@dataclass(frozen=True, eq=False)
class DirichletPosterior(_account.Drawn):
    """A posterior of category probabilities.

    Attributes
    ----------
    model : DirichletCategorical
        Where it comes from.
    n : int
        Records.
    alphas : ndarray, shape (K,)
        Prior parameters plus tempered counts.

    Examples
    --------
    >>> from quincunx.posterior import DirichletCategorical
    >>> DirichletCategorical([1, 1, 1], trim=0.05).posterior([0, 2, 2, 1]).alphas
    array([2., 2., 3.])
    """

    model: DirichletCategorical
    n: int
    alphas: Floats

    def _draw(self, count: int, relation: Relation, words: list[int] | None) -> Array:
        known = _account.public(self.n, _account.relation_of(relation))
        return self.model._draw(self.alphas, known, count, words)


@posterior_doc
@dataclass(frozen=True)
class DirichletCategorical:
    """Categories 0..K-1 with a Dirichlet prior on ``{theta_k >= w}``.

    The posterior is ``Dirichlet(alpha + tau counts)`` there.

    Parameters
    ----------
    alphas : sequence of float
        Of the prior, > 0, at least two.
    trim : float, optional
        w in (0, 1/K). Without it there is no pure epsilon, and no draw.
    temper : float
        The power tau > 0 of the likelihood.
    prior : {"dirichlet", "beta_tree"}
        ``"beta_tree"``: a balanced binary tree over the categories with an independent Beta law, trimmed to [w, 1 - w]
        (w < 1/2), at each split; the Dirichlet law's own splits where nothing is trimmed.

    {domain}

    Notes
    -----
    Replacing a record costs at most ``2 tau ln((1 - (K - 1) w) / w)``. For two categories the guarantee of n records is
    exact (`BetaBernoulli`); for more no exact account is proved, and it is the range whatever n. With the tree it is
    ``2 tau ceil(log2 K) ln((1 - w) / w)``: a record touches one path.

    Vectors are drawn from the law on a lattice of ``N >= 256`` steps (finer for more records, which are public), one
    category after another: K N**2 / 2 exponentials once, the same steps for any data, and K exact choices per draw,
    whose work depends on the vector that is drawn. What the doubles of the lattice differ from the law is part of
    epsilon: for the n given, else for up to 2**20 records.

    Examples
    --------
    >>> from quincunx.posterior import DirichletCategorical
    >>> model = DirichletCategorical([1, 1, 1], trim=0.1)
    >>> round(model.guarantee(100).epsilon, 6)  # 2 ln 8
    4.158883
    >>> sample = model.posterior([0, 1, 1, 2, 1]).sample(2)
    >>> sample.values.shape, bool((sample.values >= 0.1 - 1e-12).all())
    ((2, 3), True)
    """

    alphas: Any
    trim: float | None = None
    temper: float = 1.0
    prior: str = "dirichlet"

    def __post_init__(self) -> None:
        values = _check.reals_where(self.alphas, "alphas", "positive", lambda a: a > 0)
        if values.ndim != 1 or len(values) < 2:
            raise ValueError(f"`alphas` must have shape (K,) with K at least 2, got {values.shape}")
        object.__setattr__(self, "alphas", tuple(values.tolist()))
        _check.one_of(self.prior, "prior", PRIORS)
        if self.trim is not None:
            categories = len(values) if self.prior == "dirichlet" else 2
            object.__setattr__(self, "trim", _account.checked_trim(self.trim, categories))
        object.__setattr__(self, "temper", _check.real(self.temper, "temper", positive=True))

    def _trimmed(self) -> float:
        if self.trim is None:
            raise ValueError("`trim` must be given: an untrimmed Dirichlet posterior has no pure epsilon")
        return self.trim

    def _binary(self) -> BetaBernoulli:
        # The first category is the zero.
        return BetaBernoulli(self.alphas[1], self.alphas[0], self._trimmed(), self.temper)

    def _resolution(self, n: int | None) -> int:
        # A number of records that is private must not show in the lattice.
        return 2048 if n is None else min(2048, max(256, 2 ** math.ceil(math.log2(4 * math.sqrt(n + 1)))))

    def _excess(self, n: int | None) -> float:
        """Return what the doubles of the lattice add to epsilon."""
        if len(self.alphas) == 2 or self.prior != "dirichlet":
            return 0.0
        total = sum(self.alphas) + self.temper * (_account.MOST_RECORDS if n is None else n)
        return 2 * _core.trimmed_dirichlet_error(total, len(self.alphas), self._trimmed(), self._resolution(n))

    def guarantee(self, n: int | None = None, *, relation: Relation = ONE) -> PrivacyGuarantee:
        """Return the guarantee of one draw from the posterior of n records.

        Parameters
        ----------
        n : int, optional
            Records, public; needed for an exact account, which there is for two categories.
        relation : ReplaceOne or AddRemove
            About which neighbors.

        Returns
        -------
        PrivacyGuarantee
            Range-bounded; of two categories and n as for `BetaBernoulli`.

        {domain}
        """
        about = _account.relation_of(relation)
        count = None if n is None else _check.whole(n, "n", maximum=2**53)
        if len(self.alphas) == 2:
            return self._binary().guarantee(count, relation=about)
        sides = 2 if isinstance(about, ReplaceOne) else 1
        if self.prior == "beta_tree":
            per_split = self.temper * _account.log_odds(self._trimmed())
            depth = math.ceil(math.log2(len(self.alphas)))
            most = count if count is not None and sides == 2 else _account.MOST_RECORDS
            margin = 2 * depth * max(model._margin(most) for model in self._split_models())
            return _account.ranged(_account.upwards(sides * depth * per_split, margin), about)
        whole = sides * self.temper * _account.log_odds(self._trimmed(), len(self.alphas))
        return _account.ranged(_account.upwards(whole, self._excess(_account.public(count, about))), about)

    def _splits(self) -> list[tuple[range, range]]:
        """Return the splits of a balanced tree: which categories go left and right."""
        found, todo = [], [range(len(self.alphas))]
        while todo:
            part = todo.pop()
            if len(part) > 1:
                middle = (len(part) + 1) // 2
                left, right = part[:middle], part[middle:]
                found.append((left, right))
                todo += [left, right]
        return found

    def _split_models(self) -> list[BetaBernoulli]:
        a = self.alphas
        return [
            BetaBernoulli(sum(a[i] for i in left), sum(a[i] for i in right), self._trimmed(), self.temper)
            for left, right in self._splits()
        ]

    def posterior(self, data: npt.ArrayLike) -> DirichletPosterior:
        """Return the posterior given categories.

        Parameters
        ----------
        data : array_like of int, shape (n,)
            Records; a number outside 0..K-1 is clipped by itself, without a warning.

        Returns
        -------
        DirichletPosterior
            To draw from, with its guarantee.

        {numbers}
        """
        codes = np.rint(_account.records(data, 0, len(self.alphas) - 1)).astype(np.int64)
        counts = np.bincount(codes, minlength=len(self.alphas))
        return DirichletPosterior(self, len(codes), np.array(self.alphas) + self.temper * counts)

    def _draw(self, alphas: Floats, n: int | None, size: int, words: list[int] | None) -> Floats:
        trim = self._trimmed()
        if len(alphas) > 2 and self.prior == "dirichlet":
            flat = _core.trimmed_dirichlet(alphas, trim, self._resolution(n), size, words)
            return flat.reshape(size, len(alphas))
        grid = BetaBernoulli(1, 1, trim)._grid()
        if len(alphas) == 2:
            ones = grid.draw(alphas[1], alphas[0], size, words)
            return np.stack((1 - ones, ones), axis=1)
        values = np.ones((size, len(alphas)))
        for place, (left, right) in enumerate(self._splits()):
            a, b = alphas[left.start : left.stop].sum(), alphas[right.start : right.stop].sum()
            key = None if words is None else [words[0] ^ (place + 1), words[1]]
            share = grid.draw(a, b, size, key)
            values[:, left.start : left.stop] *= share[:, None]
            values[:, right.start : right.stop] *= 1 - share[:, None]
        return values

    def calibrate(self, epsilon: float, *, knob: str | None = None) -> DirichletCategorical:
        """Return the model changed so that one draw spends at most epsilon, for every n up to 2**20.

        Parameters
        ----------
        epsilon : float
            Target, > 0.
        {knob}

        Returns
        -------
        DirichletCategorical

        {domain}
        """
        level = _check.real(epsilon, "epsilon", positive=True)
        changed = knob if knob is not None else ("trim" if self.trim is None else "temper")
        _check.one_of(changed, "knob", ("trim", "temper"))
        depth = math.ceil(math.log2(len(self.alphas))) if self.prior == "beta_tree" else 1
        if changed == "temper":
            spent = self.guarantee().epsilon
            model = replace(self, temper=self.temper * min(1.0, level / spent * (1 - 1e-9)))
            times = 1
            while model.guarantee().epsilon > level and model.temper > 1e-12:
                model, times = replace(self, temper=model.temper * (1 - 1e-6) ** times), 2 * times
        else:
            categories = 2 if self.prior == "beta_tree" else len(self.alphas)
            share = level * (1 - 1e-9) / (self.temper * depth)
            model = replace(self, trim=_account.trim_for(share, categories))
            excess = model.guarantee().epsilon - level
            if excess > 0:
                share -= (1 + 1e-6) * excess / (self.temper * depth)
                model = replace(self, trim=_account.trim_for(max(share, 1e-12), categories))
        if model.guarantee().epsilon > level:
            raise ValueError(f"`epsilon` must be large enough for this model, got {level}")
        return model
