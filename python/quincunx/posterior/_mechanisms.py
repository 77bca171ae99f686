"""How a network is fitted privately: noise on counts or parities, or a draw from a trimmed posterior."""

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from quincunx import _check, _core
from quincunx._types import Floats
from quincunx.posterior import _account
from quincunx.posterior._dirichlet import DirichletCategorical
from quincunx.posterior._records import Records, marginal
from quincunx.posterior._structure import Nonneg, Structure
from quincunx.privacy import PrivacyGuarantee, ReplaceOne, _rational
from quincunx.privacy._geometric import geometric_noise
from quincunx.privacy._relations import Relation
from quincunx.privacy._release import marked, seed_words

NOISY = ("laplace", "fourier_l1", "fourier_linf")
MECHANISMS = ("auto", *NOISY, "posterior_sample", "map")
NONNEG = ("clip", "min_shift", "project", "fixed_shift")
#: What is released lies between these ends, so that sums of two stay within 64 bits.
LARGEST = 2**61
#: A power of the likelihood whose draws are its maximum, and with which sums of 2**32 records are statistics.
SHARPEST = 2.0**30
Exact = npt.NDArray[np.object_]  # of Fractions, or of Python ints over one denominator


class Fit(TypedDict):
    """What `PrivateBayesNet` describes."""

    cpds: dict[Hashable, Floats]
    guarantee: PrivacyGuarantee
    mechanism: str
    consistent: NotRequired[bool]
    counts: NotRequired[dict[Hashable, Exact]]
    noisy_counts: NotRequired[dict[Hashable, Exact]]
    coefficients: NotRequired[dict[int, Fraction] | None]


def fit(
    net: Structure,
    data: Records,
    epsilon: float,
    mechanism: str,
    relation: Relation,
    nonneg: Nonneg | None,
    smooth: float,
    trim: float | None,
    insecure_seed: int | None,
) -> Fit:
    """Fit a network: the method `DiscreteBayesNet.fit_private` describes it."""
    level = _check.real(epsilon, "epsilon", positive=True)
    about = _account.relation_of(relation)
    _check.one_of(mechanism, "mechanism", MECHANISMS)
    strength = _check.nonnegative(smooth, "smooth")
    seed_words(insecure_seed)  # refuses what is none before anything is looked at
    chosen = automatic(net, level, about) if mechanism == "auto" else mechanism
    if trim is not None and chosen != "map":
        raise ValueError(f"`trim` is for the mechanism 'map', got it with {chosen!r}")
    if chosen in NOISY:
        rule = _nonneg("clip" if nonneg is None else nonneg)
        return _noisy(net, data, level, chosen, about, rule, strength, insecure_seed)
    if nonneg is not None and mechanism != "auto":
        raise ValueError(f"`nonneg` is for mechanisms that add noise, got it with {chosen!r}")
    return _sampled(net, data, level, chosen, about, trim, insecure_seed)


def automatic(net: Structure, epsilon: float, relation: Relation) -> str:
    """Return the mechanism with the smallest predicted error of a cell, which does not depend on data."""
    if net.is_binary and max(len(net.family(node)) for node in net.nodes) <= 20:
        names: tuple[str, ...] = NOISY
    else:
        names = ("laplace",)

    def spread(name: str) -> float:
        return math.hypot(*(net.cell_deviation(node, name, epsilon, relation) for node in net.measured))

    best = min(names, key=spread)
    if net.is_binary:
        return best
    # A draw of a trimmed posterior errs by the pull of its trimming, w per probability, whatever n; noise of deviation
    # s in a cell of a table of n records by s / n: with a reference of 100 records per cell they meet at w = s / (100
    # cells).
    sides = 2 if isinstance(relation, ReplaceOne) else 1
    share = epsilon * 2 / sides / len(net.nodes)
    pull = max(_account.trim_for(share, net._sizes[node]) * net._sizes[node] for node in net.nodes)
    noise = max(net.cell_deviation(node, best, epsilon, relation) / 100 for node in net.measured)
    return "posterior_sample" if pull < noise else best


def _nonneg(value: Nonneg) -> tuple[str, float]:
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "fixed_shift":
        return "fixed_shift", _check.real(value[1], "nonneg", positive=True)
    name = _check.one_of(value, "nonneg", NONNEG)
    return name, math.log(10.0)


# Noise.


def _noisy(
    net: Structure,
    data: Records,
    epsilon: float,
    mechanism: str,
    relation: Relation,
    nonneg: tuple[str, float],
    smooth: float,
    insecure_seed: int | None,
) -> Fit:
    words = seed_words(insecure_seed)
    if mechanism == "laplace":
        raw, rows, guarantee = _laplace(net, data, epsilon, relation, words)
        coefficients = None
    else:
        raw, rows, guarantee, coefficients = _fourier(net, data, epsilon, mechanism, relation, words)
    guarantee = marked(guarantee, insecure_seed)
    public = rows if isinstance(relation, ReplaceOne) else None
    tables, exact = _without_negatives(net, raw, public, nonneg, mechanism, epsilon, relation, coefficients)
    masses, equal = _smoothing(net, mechanism, epsilon, relation, smooth)
    counts, cpds = {}, {}
    for node in net.nodes:
        table = tables[node]
        counts[node] = table
        size = math.prod(table.shape)
        lifted = np.maximum(np.asarray(table, dtype=np.float64) + masses[node] / size, 0.0)
        cpds[node] = (lifted + 1) / (lifted + 1).sum(axis=-1, keepdims=True)
    return Fit(
        counts=counts,
        cpds=cpds,
        guarantee=guarantee,
        mechanism=mechanism,
        consistent=bool(exact and equal and (mechanism != "laplace" or len(net.measured) == 1)),
        noisy_counts=raw,
        coefficients=coefficients,
    )


def _laplace(
    net: Structure, data: Records, epsilon: float, relation: Relation, words: list[int] | None
) -> tuple[dict[Hashable, Exact], int, PrivacyGuarantee]:
    """Add two-sided geometric noise to the tables measured; tables within others are the mean of their sums."""
    tables, rows = net._tables(data, list(net.measured))
    sensitivity = net.count_sensitivity(relation)
    exponent = _rational.exponent(epsilon, sensitivity)
    noise = geometric_noise(exponent)
    lone = net._lone(relation)
    parts = [table.reshape(-1)[1 if node in lone else 0 :] for node, table in tables.items()]
    noisy = noise.add(np.concatenate(parts), -LARGEST, LARGEST, words)
    measured: dict[Hashable, Exact] = {}
    place = 0
    for (node, table), part in zip(tables.items(), parts, strict=True):
        values = noisy[place : place + len(part)].tolist()
        place += len(part)
        if node in lone:  # the zeros are what is left
            values = [rows - values[0], values[0]]
        measured[node] = _exact([Fraction(value) for value in values], table.shape)
    return _completed(net, measured), rows, PrivacyGuarantee(exponent * sensitivity, relation=relation)


def _exact(values: list[Fraction], shape: tuple[int, ...]) -> Exact:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _completed(net: Structure, measured: dict[Hashable, Exact]) -> dict[Hashable, Exact]:
    """Return the tables of all nodes: those not measured are the mean of what larger tables say."""
    complete = {}
    for node in net.nodes:
        if node in measured:
            complete[node] = measured[node]
            continue
        wider = net._wider(node)
        margins = [marginal(measured[other], net.family(other), net.family(node)) for other in wider]
        complete[node] = np.add.reduce(margins) * Fraction(1, len(wider))
    return complete


def _fourier(
    net: Structure, data: Records, epsilon: float, mechanism: str, relation: Relation, words: list[int] | None
) -> tuple[dict[Hashable, Exact], int, PrivacyGuarantee, dict[int, Fraction]]:
    """Add noise to the parities, and turn them back into tables that agree with one another exactly."""
    masks = net._masks
    coefficients, rows = net._coefficients(data)
    replaced = isinstance(relation, ReplaceOne)
    hidden = masks[1:] if replaced else masks
    # q = (n - c) / 2 changes by at most one; c itself by one where a record is added.
    values = [(rows - coefficients[g]) // 2 if replaced else coefficients[g] for g in hidden]
    if not hidden:
        raise ValueError("`categories` must name at least one node, got none")
    if mechanism == "fourier_l1":
        distance, lattice = net.fourier_sensitivity(relation), 0
        exponent = _rational.exponent(epsilon, distance)
        source = geometric_noise(exponent)
        noisy = source.add(np.array(values, dtype=np.int64), -LARGEST, LARGEST, words)
    else:
        # On a lattice of 2**-lattice the radius is rarely rejected.
        lattice = max(2, math.ceil(math.log2(max(4 * len(hidden) * epsilon, 1.0))))
        distance = 2**lattice
        if rows >= LARGEST >> lattice:
            raise ValueError(f"`epsilon` must be smaller for so many records, got {epsilon}")
        exponent = _rational.exponent(epsilon, distance)
        cube = _core.CubeNoise(exponent.numerator, exponent.denominator, len(hidden))
        noisy = cube.add(np.array(values, dtype=np.int64) << lattice, words)
    unit = Fraction(1, 2**lattice)
    released = {g: Fraction(int(value)) * unit for g, value in zip(hidden, noisy, strict=True)}
    if replaced:
        released = {0: Fraction(rows), **{g: rows - 2 * value for g, value in released.items()}}
    tables = {node: _table(net, node, released) for node in net.nodes}
    return tables, rows, PrivacyGuarantee(exponent * distance, relation=relation), released


def _table(net: Structure, node: Hashable, coefficients: dict[int, Fraction]) -> Exact:
    """Return a family's table: 2^-w sum_g c_g (-1)^<g, cell>, in exact fractions."""
    masks = net._family_masks(node)
    shared = math.lcm(*(coefficients[g].denominator for g in masks))
    whole = [int(coefficients[g] * shared) for g in masks]
    width = len(masks).bit_length() - 1
    for bit in range(width):
        step = 1 << bit
        for cell in range(len(whole)):
            if not cell & step:
                one, other = whole[cell], whole[cell | step]
                whole[cell], whole[cell | step] = one + other, one - other
    bottom = shared << width
    return _exact([Fraction(value, bottom) for value in whole], (2,) * width)


# Post-processing.


def _without_negatives(
    net: Structure,
    raw: dict[Hashable, Exact],
    rows: int | None,
    nonneg: tuple[str, float],
    mechanism: str,
    epsilon: float,
    relation: Relation,
    coefficients: dict[int, Fraction] | None,
) -> tuple[dict[Hashable, Exact], bool]:
    """Return tables without negative cells, and whether they are as consistent as they were."""
    rule, shift = nonneg
    mass, most = Fraction(0), None if rows is None else Fraction(rows)
    if rule == "fixed_shift":
        # The thesis: 4 t |N|^2 / (2^w epsilon) on every cell, which is a uniform mass of 4 t |N|^2 / epsilon.
        if coefficients is None:
            raise ValueError("`nonneg` = 'fixed_shift' is for the Fourier mechanisms, got it with 'laplace'")
        mass, most = Fraction(4 * shift * len(net._masks) ** 2 / epsilon), None
    elif rule == "min_shift":
        # The least uniform mass that lifts every cell of every table to zero.
        mass, most = max([mass, *(-table.min() * table.size for table in raw.values())]), None
    lifted = {node: table + mass * Fraction(1, table.size) for node, table in raw.items()} if mass else raw
    if rule == "project":
        tables = {node: _projected(table, table.sum() if most is None else most) for node, table in raw.items()}
    else:
        tables = {node: _clipped(table, most) for node, table in lifted.items()}
    return tables, all(np.array_equal(tables[node], lifted[node]) for node in raw)


def _clipped(table: Exact, most: Fraction | None = None) -> Exact:
    cells = (max(value, Fraction(0)) for value in table.reshape(-1))
    return _exact([value if most is None else min(value, most) for value in cells], table.shape)


def _projected(table: Exact, total: Fraction) -> Exact:
    """Return the nearest point of {t >= 0, sum t = total}: cells less one threshold, cut at zero."""
    cells = sorted(table.reshape(-1), reverse=True)
    if total <= 0:
        return _exact([Fraction(0)] * table.size, table.shape)
    running, threshold = Fraction(0), Fraction(0)
    for count, value in enumerate(cells, 1):
        running += value
        candidate = (running - total) / count
        if candidate >= value:
            break
        threshold = candidate
    return _clipped(table - threshold)


def _smoothing(
    net: Structure, mechanism: str, epsilon: float, relation: Relation, smooth: float
) -> tuple[dict[Hashable, float], bool]:
    """Return the uniform mass added to each node's table, and whether it is the same everywhere."""
    masses = {
        node: smooth * net.cell_deviation(node, mechanism, epsilon, relation) * math.prod(net._shape(node))
        for node in net.measured
    }
    for node in net.nodes:
        if node not in masses:
            wider = net._wider(node)
            masses[node] = sum(masses[other] for other in wider) / len(wider)
    return masses, max(masses.values()) - min(masses.values()) <= 1e-12 * max(masses.values())


# Draws.


def _sampled(
    net: Structure,
    data: Records,
    epsilon: float,
    mechanism: str,
    relation: Relation,
    trim: float | None,
    insecure_seed: int | None,
) -> Fit:
    """Draw all conditional probabilities from trimmed Dirichlet posteriors: the ranges of the nodes add up."""
    words = seed_words(insecure_seed)
    tables, rows = net._tables(data, list(net.nodes))
    known = _account.public(rows, relation)
    level = epsilon * (1 - 1e-9)
    for _ in range(20):
        models = _models(net, level, mechanism, relation, trim)
        # The range, whatever n: a record that moves between configurations of the parents changes two posteriors, for
        # which no account by n is proved.
        spent = math.fsum(_spent(net, node, model, known, relation) for node, model in models.items()) * (1 + 2.0**-50)
        if spent <= epsilon:
            break
        level = max(level - (1 + 1e-6) * (spent - epsilon) - 1e-12 * epsilon, 1e-300)
    else:
        raise ValueError(f"`epsilon` must be large enough for this network and mechanism, got {epsilon}")
    guarantee = marked(_account.ranged(spent, relation), insecure_seed)
    cpds = {}
    for place, node in enumerate(net.nodes):
        table, model = tables[node], models[node]
        flat = table.reshape(-1, table.shape[-1])
        drawn = np.empty(flat.shape)
        for row, values in enumerate(flat):
            alphas = np.array(model.alphas) + model.temper * values
            key = None if words is None else [words[0] ^ ((place << 32) + row + 1), words[1]]
            drawn[row] = model._draw(alphas, known, 1, key)[0]
        cpds[node] = drawn.reshape(table.shape)
    return Fit(cpds=cpds, guarantee=guarantee, mechanism=mechanism)


def _models(
    net: Structure, level: float, mechanism: str, relation: Relation, trim: float | None
) -> dict[Hashable, DirichletCategorical]:
    """Return the models of the nodes, whose ranges sum to the level."""
    sides = 2 if isinstance(relation, ReplaceOne) else 1
    models = {}
    for node in net.nodes:
        size = net._sizes[node]
        if mechanism == "posterior_sample":
            w = _account.trim_for(level / len(net.nodes) * 2 / sides, size)
        else:
            w = 1 / (4 * size) if trim is None else _account.checked_trim(trim, size)
        models[node] = DirichletCategorical([1.0] * size, trim=w)
    if mechanism == "posterior_sample":
        return models
    # exp(tau log-likelihood), tau = epsilon / range: the exponential mechanism with the log-likelihood as its score.
    whole = math.fsum(sides * _account.log_odds(_trim(model), len(model.alphas)) for model in models.values())
    return {
        node: DirichletCategorical(model.alphas, trim=model.trim, temper=min(level / whole, SHARPEST))
        for node, model in models.items()
    }


def _trim(model: DirichletCategorical) -> float:
    assert model.trim is not None
    return model.trim


def _spent(net: Structure, node: Hashable, model: DirichletCategorical, known: int | None, relation: Relation) -> float:
    """Return the range of a node, with what the lattice or the rounding of statistics adds in each row that changes.

    A record that is replaced may leave one configuration of the parents for another: two rows are then drawn from
    other laws. Each is allowed the deviation of a row that has all records.
    """
    replaced = isinstance(relation, ReplaceOne)
    categories = len(model.alphas)
    if categories == 2:
        deviation = model._binary()._margin(_account.MOST_RECORDS if known is None else known)
    else:
        deviation = model._excess(known)
    rows = 2 if replaced and net.parents[node] else 1
    sides = 2 if replaced else 1
    return sides * model.temper * _account.log_odds(_trim(model), categories) + rows * deviation
