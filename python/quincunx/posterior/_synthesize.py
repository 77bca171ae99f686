"""Synthetic records in one call, by either selection of marginals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from quincunx import _check
from quincunx._categories import CategoriesLike
from quincunx._progress import Progress
from quincunx._types import ByLabel
from quincunx.posterior import _account
from quincunx.posterior._adaptive import AdaptiveMarginals
from quincunx.posterior._marginal_tree import MarginalTree
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Records
from quincunx.posterior._synthetic import SyntheticBayesNet
from quincunx.privacy._relations import Relation


@posterior_doc
def synthesize(
    data: Records,
    epsilon: float,
    delta: float = 0.0,
    *,
    domain: ByLabel[CategoriesLike],
    mechanism: str = "mst",
    workload: Iterable[Iterable[Hashable]] | None = None,
    relation: Relation = _account.ONE,
    insecure_seed: int | None = None,
    progress: Progress = None,
) -> SyntheticBayesNet:
    """Fit a law to private records from which synthetic ones are drawn: ``synthesize(...).sample()``.

    Marginals are selected privately and measured with noise, and a law is fitted to them. `MarginalTree` and
    `AdaptiveMarginals` say how, and have the guarantee before anything is released.

    Parameters
    ----------
    data : array_like, shape (n, n_columns), or DataFrame
        Records: a declared category of each column.
    epsilon, delta, domain, workload, relation
        As for `MarginalTree`.
    mechanism : {"mst", "aim"}
        The marginals of a tree of pairs, in seconds, with or without `delta`; or marginals of any width, selected round
        by round where the law so far errs most, which needs a `delta` and takes minutes: on census records a third less
        error at epsilon 1.
    insecure_seed, progress
        As for `MarginalTree.release`.

    Returns
    -------
    SyntheticBayesNet
        Its `sample` draws a data frame; its `guarantee` is that of everything in it.

    Raises
    ------
    ValueError, TypeError
        As for `MarginalTree`, `AdaptiveMarginals` and their `release`.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import synthesize
    >>> rng = np.random.default_rng(0)
    >>> job = rng.integers(0, 3, 2000)
    >>> data = np.stack([job, (job + (rng.random(2000) < 0.1)) % 3, rng.integers(0, 2, 2000)], axis=1)
    >>> made = synthesize(data, 1.0, 1e-6, domain={"job": 3, "town": 3, "coin": 2})
    >>> made.guarantee
    PrivacyGuarantee(epsilon=1.0, delta=1e-06, relation=ReplaceOne(), numerics='exact')
    >>> ("job", "town") in made.edges
    True
    >>> made.sample(rng=1).shape
    (2000, 3)
    """
    selection: MarginalTree | AdaptiveMarginals
    if _check.one_of(mechanism, "mechanism", ("mst", "aim")) == "mst":
        selection = MarginalTree(epsilon, delta, domain=domain, workload=workload, relation=relation)
    else:
        selection = AdaptiveMarginals(epsilon, delta, domain=domain, workload=workload, relation=relation)
    return selection.release(data, insecure_seed=insecure_seed, progress=progress)
