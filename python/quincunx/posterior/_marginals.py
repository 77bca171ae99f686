"""The joint law of noisy marginals, of whatever origin: tables that overlap are made one law."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_

import numpy as np

from quincunx import _check
from quincunx._categories import CategoriesLike
from quincunx._tables import fitting
from quincunx._types import ByLabel
from quincunx.posterior._law_fit import NoisyMarginal, fit_law
from quincunx.posterior._measuring import geometric_variance, total_of
from quincunx.posterior._network import DiscreteBayesNet
from quincunx.posterior._parts import posterior_doc
from quincunx.posterior._records import Nodes
from quincunx.posterior._synthetic import SyntheticBayesNet, domain_of, of_conditionals
from quincunx.privacy import Release, noise

#: Laws of noise that is added.
Added = noise.DiscreteGaussianNoise | noise.LaplaceNoise | noise.GaussianNoise | noise.GeometricNoise


@posterior_doc
def fit_marginals(
    marginals: Mapping[Nodes, Release],
    *,
    domain: ByLabel[CategoriesLike],
    n_records: int | None = None,
) -> SyntheticBayesNet:
    """Fit a law of records to noisy tables of some of its columns, all at once: private-PGM.

    Parameters
    ----------
    marginals : mapping of tuple of columns to Release
        Counts of records with noise, an axis for each column of the tuple, in its order; the labels of an axis, if it
        has any, are those of the domain in any order. Tables may overlap, and disagree by their noise.
    domain : mapping of column to int or sequence
        What each column may hold: a number k for the codes 0..k-1, or labels. A column that no table has is uniform.
    n_records : int, optional
        The number of records, where it is public; by default what the tables say, weighted by their noise.

    Returns
    -------
    SyntheticBayesNet
        With `sample`, `cpds`, `counts`, `edges`, `guarantee`: that of all releases together. Those that carry one and
        the same guarantee object, as the parts of one release do, are counted once: releases of noise of their own that
        are built by hand must have an object each.

    Raises
    ------
    ValueError, TypeError
        If a table is no release with a law of its noise, has other axes than its columns, or a column is not in the
        domain.
    TooLargeError
        If the junction tree of the tables needs more memory than there is.

    Notes
    -----
    The law that minimizes ``sum |table - expected|^2 / (2 variance)`` fits the noise too. This one lies between it and
    the product of the tables of one column, on a path of laws p with a factor for each table: each minimizes that sum
    plus ``tau n KL(p | the one before)``, tau falling by thirds. It is the first one from which a step would raise
    Stein's unbiased estimate of the squared error to the true tables: the sum, plus the derivative of the expected
    tables by the noisy ones, which is measured along one direction of signs that are always the same [2]_ [3]_. The
    estimate is without bias for Gaussian noise, and as far as the fit is linear for any. Where there is hardly any
    noise the expected tables are the noisy ones. The law lives on the cliques of a junction tree: time and memory grow
    with their cells, exponentially in the treewidth of the graph in which columns of a table are neighbors.

    References
    ----------
    .. [1] R. McKenna, D. Sheldon and G. Miklau (2019), Graphical-model based estimation and inference for differential
       privacy, ICML.
    .. [2] C. M. Stein (1981), Estimation of the mean of a multivariate normal distribution, Ann. Statist. 9.
    .. [3] S. Ramani, T. Blu and M. Unser (2008), Monte-Carlo SURE, IEEE Trans. Image Process. 17.

    Examples
    --------
    >>> import numpy as np
    >>> from quincunx.posterior import fit_marginals
    >>> from quincunx.privacy import DiscreteGaussianMechanism
    >>> counts = {("a", "b"): [[400, 100], [100, 400]], ("b", "c"): [[450, 50], [50, 450]]}
    >>> mechanism = DiscreteGaussianMechanism(sensitivity=1.0, variance=25.0)
    >>> released = {pair: mechanism.release(table, insecure_seed=1) for pair, table in counts.items()}
    >>> law = fit_marginals(released, domain={"a": 2, "b": 2, "c": 2})
    >>> round(float(law.query(["a", "c"])[0, 0]), 1), law.edges
    (0.4, (('b', 'a'), ('b', 'c')))
    """
    if not isinstance(marginals, Mapping):
        raise TypeError(f"`marginals` must be a mapping by columns, got {type(marginals).__name__}")
    net = domain_of(domain)
    found: dict[tuple[int, ...], NoisyMarginal] = {}
    for names, release in marginals.items():
        table = _marginal(net, names, release)
        found[table.columns] = table.and_another(found[table.columns]) if table.columns in found else table
    if not found:
        raise ValueError("`marginals` must hold at least one table, got none")
    tables = list(found.values())
    total = (
        total_of([(table.values, table.variance) for table in tables])
        if n_records is None
        else _check.whole(n_records, "n_records", minimum=1)
    )
    law = fit_law(list(net._sizes.values()), tables, total).law
    guarantees = {id(release.guarantee): release.guarantee for release in marginals.values()}
    guarantee = reduce(and_, guarantees.values())
    return of_conditionals(law.conditionals(), net, guarantee, total, marginals, "marginals")


def _marginal(net: DiscreteBayesNet, names: Nodes, release: Release) -> NoisyMarginal:
    """Return a release with its columns in rising order."""
    if not isinstance(names, tuple) or not names:
        raise TypeError(f"`marginals` must have tuples of columns as keys, got {names!r}")
    if not isinstance(release, Release) or release.noise is None:
        raise TypeError(f"`marginals` must be releases with a law of their noise, got {type(release).__name__}")
    if len(set(names)) < len(names) or not set(names) <= set(net.nodes):
        known = list(net.nodes)
        raise ValueError(f"`marginals` must have columns of `domain`, {known}, once each in a key, got {names}")
    places = [net._columns[name] for name in names]
    shape = tuple(net._sizes[name] for name in names)
    values = _check.reals(release.values, f"marginals[{names}]")
    if values.shape != shape:
        raise ValueError(f"`marginals[{names}]` must have an axis for each column, {shape}, got {values.shape}")
    variance = _variance(release.noise)
    if variance is None:
        raise ValueError(
            f"`marginals[{names}]` must have geometric, Laplace or Gaussian noise, of one variance and not clipped, "
            f"got {release.noise!r}"
        )
    for place, (axis, name) in enumerate(zip(fitting(release.axes_, shape), names, strict=False)):
        if axis.name != name and axis.name in net.nodes:
            raise ValueError(f"`marginals[{names}]` must have the axes in this order, got {axis.name!r} for {name!r}")
        if axis.labels is not None:
            labels = list(axis.labels)
            wanted = net._declared[name].order(labels, f"marginals[{names}]")
            values = values.take([labels.index(label) for label in wanted], place)
    return NoisyMarginal(tuple(sorted(places)), values.transpose(np.argsort(places)), variance)


def _variance(law: noise.Noise) -> float | None:
    """Return the variance of noise that is added to each cell alike, None for other noise."""
    if not isinstance(law, Added) or law.lower is not None or law.upper is not None:
        return None
    if isinstance(law, noise.DiscreteGaussianNoise):
        return law.variance
    if isinstance(law, noise.LaplaceNoise):
        return 2 * law.scale**2
    if isinstance(law, noise.GaussianNoise):
        return law.sigma**2 if law.scales is None and law.radius is None else None
    return geometric_variance(float(law.decay)) if np.ndim(law.alpha) == 0 else None
