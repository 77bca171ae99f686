"""What both selections of marginals are: their records, their relation, and categories that noise hides, as one group.

After the tables of one column, categories whose noisy counts are below some deviations of the noise can be one category
in all that follows, and of it each has the share that the table says: what is released decides, so nothing is spent.

Source: R. McKenna, G. Miklau and D. Sheldon (2021), Winning the NIST contest: a scalable and general approach to
differentially private synthetic data, J. Privacy and Confidentiality 11(3), where it compresses the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx._categories import CategoriesLike
from quincunx._progress import Progress, reporting
from quincunx._types import Array, ByLabel, Floats, Ints
from quincunx.posterior import _account
from quincunx.posterior._measuring import scopes_of
from quincunx.posterior._records import Nodes, Records
from quincunx.posterior._synthetic import Groups, SyntheticBayesNet, domain_of, group_of
from quincunx.privacy import ReplaceOne
from quincunx.privacy._categorical import on_simplex
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import Guaranteed

#: Deviations of the noise below which the source takes categories together.
RARE = 3.0


class ReleaseJob(NamedTuple):
    """What a release is made of: codes by column, how many records there are, the seed of tests, and who is told."""

    columns: npt.NDArray[np.int32]
    rows: int
    insecure_seed: int | None
    report: Callable[[int, int], object] | None


class MarginalSelection(Guaranteed):
    """Private selection and measurement of marginals of records in a declared domain."""

    _UNIT: ClassVar[str]

    def __init__(
        self, domain: ByLabel[CategoriesLike], workload: Iterable[Iterable[Hashable]] | None, relation: Relation
    ) -> None:
        self.relation = _account.relation_of(relation)
        self._net = domain_of(domain)
        self.columns: Nodes = self._net.nodes
        self._sizes = list(self._net._sizes.values())
        self._scopes = scopes_of(self.columns, workload)
        #: Cells of a table that a neighbor moves by one.
        self._moved = 2 if isinstance(self.relation, ReplaceOne) else 1

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
            True for a bar, or a function of (done, total): steps of a `MarginalTree`, thousandths of the privacy loss
            of `AdaptiveMarginals`.

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
            If the tables need more memory than there is.

        Examples
        --------
        >>> from quincunx.posterior import AdaptiveMarginals, MarginalTree
        >>> domain = {"a": 2, "b": 2}
        >>> for selection in (MarginalTree(3.0, domain=domain), AdaptiveMarginals(3.0, 1e-6, domain=domain)):
        ...     made = selection.release([[0, 1], [1, 0]] * 300)
        ...     made.marginals["a", "b"].shape, made.cpds["a"].shape
        ((2, 2), (2,))
        ((2, 2), (2,))
        """
        codes, rows = self._net._data(data)
        if not rows and isinstance(self.relation, ReplaceOne):
            raise ValueError("`data` must hold at least one record, got none")
        columns = np.ascontiguousarray(codes.reshape(rows, len(self.columns)).T, dtype=np.int32)
        with reporting(progress, self._UNIT) as report:
            return self._release(ReleaseJob(columns, rows, insecure_seed, report))

    def _release(self, job: ReleaseJob) -> SyntheticBayesNet:
        """Select and measure: each selection has its own way."""
        raise NotImplementedError


def rare_groups(one: Ints, spread: float, threshold: float = RARE) -> Groups:
    """Return the categories one by one, but for those below so many deviations, which are one group: the last."""
    rare = one < threshold * math.sqrt(spread)
    alone = [(int(code),) for code in np.flatnonzero(~rare)]
    return (*alone, tuple(np.flatnonzero(rare).tolist())) if rare.any() else tuple(alone)


def regrouped(groups: Sequence[Groups], columns: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return columns of the codes of groups, of such of categories."""
    return np.stack([group_of(group).astype(np.int32)[column] for group, column in zip(groups, columns, strict=True)])


def summed(groups: Groups, one: npt.ArrayLike) -> Floats:
    """Return the sums of groups."""
    return np.bincount(group_of(groups), one).astype(np.float64)


def shares(groups: Groups, one: Array, totals: Floats) -> Floats:
    """Return the share that each category has of its group: that of the nearest table with these totals of groups."""
    found = np.ones(len(one))
    for group, total in zip(groups, totals, strict=True):
        if len(group) > 1:
            part = on_simplex(one[list(group)].astype(np.float64), float(total))
            found[list(group)] = part / part.sum() if part.sum() > 0 else 1 / len(group)
    return found
