"""Private Poisson factorization in plain NumPy, for comparison: written from the models, by other ways than the core's.

A count y ~ Poisson(rate) is released as o = y + t, where P(t) = (1 - alpha) / (1 + alpha) alpha^|t|. The rate of a cell
is a sum over components of products of factor entries, each Gamma(shape, rate) a priori. Everything here forms the
whole table of component rates (cells x components), sums laws of counts term by term, and loops where it may.

Sources: Schein, Wu, Schofield, Zhou and Wallach (2019), Locally private Bayesian inference for count models;
Schofield, Schein, Wu and Wallach (2018), A variational inference approach for locally private inference of Poisson
factorization models. The sampler with auxiliary variables and the "published" scheme follow the papers' equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.special import digamma, gammainc, gammaln, ive, logsumexp, xlogy

# The law of one count.


def log_weights(released, rate, alpha, top):
    """Return ln(rate^y / y! alpha^|o - y|) for y = 0..top, along a new last axis."""
    y = np.arange(top + 1)
    o, mu, a = (np.asarray(x)[..., None] for x in (released, rate, alpha))
    return xlogy(y, mu) - gammaln(y + 1) + xlogy(np.abs(o - y), a)


def enough(released, rate, alpha):
    """Return a count beyond which the law of any of these cells has less than 1e-17 of its mass."""
    center = max(np.max(np.maximum(released, 0), initial=0), np.max(rate, initial=0), 1)
    return int(center + 12 * np.sqrt(center) + 40)


def log_noise_constant(alpha):
    return np.log1p(-np.asarray(alpha, dtype=float)) - np.log1p(alpha)


@dataclass
class CellLaw:
    """The conditional law of counts given releases and rates, by direct sums."""

    released: np.ndarray
    rate: np.ndarray
    alpha: np.ndarray

    def __post_init__(self):
        self.released, self.rate, self.alpha = np.broadcast_arrays(self.released, self.rate, self.alpha)
        self.weights = log_weights(self.released, self.rate, self.alpha, enough(self.released, self.rate, self.alpha))
        self.log_total = logsumexp(self.weights, axis=-1)

    @property
    def mass(self):
        return np.exp(self.weights - self.log_total[..., None])

    @property
    def mean(self):
        return self.mass @ np.arange(self.weights.shape[-1])

    @property
    def log_likelihood(self):
        """Return ln p(o | rate)."""
        return self.log_total + log_noise_constant(self.alpha) - self.rate


def law_on_grid(released, rate, alpha):
    """Log-likelihood and mean count of one release at many rates, some of them huge: for the integrals below.

    The terms up to o are added; those beyond are a Poisson tail, a^-o exp(a rate) P(o + 1, a rate).
    """
    if alpha == 0:
        return xlogy(released, rate) - rate - gammaln(released + 1), np.full_like(rate, released)
    if released <= 0:
        return log_noise_constant(alpha) - released * np.log(alpha) - (1 - alpha) * rate, alpha * rate
    total, first = np.zeros_like(rate), np.zeros_like(rate)
    for y in range(released + 1):
        term = np.exp(y * np.log(rate) + (released - y) * np.log(alpha) - gammaln(y + 1) - rate)
        total, first = total + term, first + y * term
    beyond = np.exp(-released * np.log(alpha) - (1 - alpha) * rate)
    total = total + beyond * gammainc(released + 1, alpha * rate)
    first = first + alpha * rate * beyond * gammainc(released, alpha * rate)
    # At rates where all underflows the posterior has no mass.
    possible = total > 0
    log_total = np.log(total, out=np.full_like(total, -np.inf), where=possible)
    return log_total + log_noise_constant(alpha), np.divide(first, total, out=np.zeros_like(total), where=possible)


# Models: tables of component rates, their sums, and exposures.


@dataclass
class Model:
    """A model of a table of cells; `kind` is "cp", "directed" or "undirected", or that of `Tucker`.

    `observed` marks the cells that count; the diagonal of a network never does, and of an undirected one only the
    cells above it.
    """

    kind: str
    extents: tuple
    n_components: int
    priors: list  # per factor (shape, rate), scalars or arrays; (concentration, None) for Dirichlet laws over the rows
    hidden: np.ndarray | None = None
    observed: np.ndarray = field(init=False)

    def __post_init__(self):
        rows, cols = self.shape
        self.observed = np.ones((rows, cols), dtype=bool)
        if self.hidden is not None:
            self.observed &= ~np.asarray(self.hidden, dtype=bool).reshape(rows, cols)
        if self.kind == "directed":
            self.observed &= ~np.eye(rows, dtype=bool)
        if self.kind == "undirected":
            self.observed &= np.triu(np.ones((rows, rows), dtype=bool), 1)
        self.priors = [
            tuple(None if p is None else np.broadcast_to(np.asarray(p, dtype=float), shape) for p in prior)
            for prior, shape in zip(self.priors, self.factor_shapes, strict=True)
        ]

    @property
    def dirichlet(self):
        """Which factors have Dirichlet laws."""
        return [rate is None for _, rate in self.priors]

    @property
    def counted(self):
        """The cells that have counts: all, where those held out are drawn."""
        return np.ones_like(self.observed) if any(self.dirichlet) else self.observed

    @property
    def shape(self):
        if self.kind == "cp":
            return int(np.prod(self.extents[:-1])), self.extents[-1]
        return self.extents[0], self.extents[0]

    @property
    def factor_shapes(self):
        k = self.n_components
        return [(extent, k) for extent in self.extents] if self.kind == "cp" else [(self.extents[0], k), (k, k)]

    def component_rates(self, factors):
        """Return the rate of each component in each cell: (..., rows, cols, components)."""
        many = np.shape(factors[0])[:-2]
        if self.kind != "cp":
            theta, pi = factors
            return np.einsum("...ic,...cd,...jd->...ijcd", theta, pi, theta).reshape(*many, *self.shape, -1)
        table = np.ones((*many, 1, self.n_components))
        for factor in factors:
            table = (table[..., :, None, :] * factor[..., None, :, :]).reshape(*many, -1, self.n_components)
        return table.reshape(*many, *self.shape, self.n_components)

    def rates(self, factors):
        return self.component_rates(factors).sum(axis=-1)

    def sums(self, split):
        """Return, per factor, how much of the cells' split counts belongs to each entry."""
        split = split * self.counted[..., None]
        if self.kind == "cp":
            table = split.reshape(*self.extents, self.n_components)
            modes = range(len(self.extents))
            return [table.sum(axis=tuple(n for n in modes if n != m)) for m in modes]
        c = self.n_components
        table = split.reshape(*self.shape, c, c)
        theta = table.sum(axis=(1, 3)) + table.sum(axis=(0, 2))
        pi = table.sum(axis=(0, 1))
        if self.kind == "undirected":
            pi = pi + pi.T - np.diag(np.diag(pi))
        return [theta, pi]

    def exposure(self, factors, mode, row=None):
        """Return the derivative of the observed cells' total rate by each entry of one factor (or of one row)."""
        if self.kind == "cp":
            ones = [np.ones_like(f) if m == mode else f for m, f in enumerate(factors)]
            return self.sums(self.component_rates(ones))[mode]
        theta, pi = factors
        seen = self.observed.astype(float)
        if mode == 0:
            # A network's row enters as sender and as receiver; in no cell as both.
            every = seen @ theta @ pi.T + seen.T @ theta @ pi
            return every if row is None else every[row]
        pairs = theta.T @ seen @ theta
        if self.kind == "undirected":
            pairs = pairs + pairs.T - np.diag(np.diag(pairs))
        return pairs

    def in_turn(self, mode):
        """Say whether rows of a factor are exposed to one another."""
        return self.kind != "cp" and mode == 0

    # Draws.

    def draw_factors(self, rng):
        factors = [rng.gamma(shape, 1.0 if rate is None else 1 / rate) for shape, rate in self.priors]
        factors = [f / f.sum(axis=0) if known else f for f, known in zip(factors, self.dirichlet, strict=True)]
        if self.kind == "undirected":
            factors[1] = np.triu(factors[1]) + np.triu(factors[1], 1).T
        return factors

    def draw_factors_given(self, factors, sums, rng, fixed=None):
        """Draw each factor in turn from its gamma conditionals; the rows of a network's first factor one by one."""
        factors = [f.copy() for f in factors]
        for mode, (shape, rate) in enumerate(self.priors):
            if fixed is not None and fixed[mode]:
                continue
            if rate is None:
                factors[mode] = rng.gamma(shape + sums[mode])
                factors[mode] /= factors[mode].sum(axis=0)
                continue
            if not self.in_turn(mode):
                new = rng.gamma(shape + sums[mode], 1 / (rate + self.exposure(factors, mode)))
                if self.kind == "undirected":
                    new = np.triu(new) + np.triu(new, 1).T
                factors[mode] = new
                continue
            for i in range(len(factors[mode])):
                factors[mode][i] = rng.gamma(shape[i] + sums[mode][i], 1 / (rate[i] + self.exposure(factors, mode, i)))
        return factors

    def draw_released(self, factors, alpha, rng):
        """Draw counts and their noise from the model: `(counts, plus, minus)`, released as counts + plus - minus."""
        counts = rng.poisson(self.rates(factors))
        alpha = np.broadcast_to(alpha, counts.shape)
        plus, minus = (rng.geometric(1 - alpha) - 1 for _ in range(2))
        return counts, plus, minus

    def log_prior(self, factors):
        total = 0.0
        for mode, ((shape, rate), x) in enumerate(zip(self.priors, factors, strict=True)):
            terms = shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x
            once = np.triu(np.ones_like(terms)) if self.kind == "undirected" and mode == 1 else 1.0
            total += (terms * once).sum()
        return total


class Tucker(Model):
    """A tensor with a core; extents are those of the modes, their numbers of components, and the factor of each.

    Cells in which modes of one factor have the same index are hidden. Everything is a sum over the table of all cells
    and all combinations of components.
    """

    def __post_init__(self):
        extents, _, numbers = self.modes
        hidden = np.zeros(extents, dtype=bool) if self.hidden is None else np.reshape(self.hidden, extents).copy()
        index = np.indices(extents)
        for a, b in product(range(len(extents)), repeat=2):
            hidden |= (index[a] == index[b]) & (a < b and numbers[a] == numbers[b])
        self.hidden = hidden.reshape(self.shape)
        super().__post_init__()

    @property
    def modes(self):
        m = len(self.extents) // 3
        return self.extents[:m], self.extents[m : 2 * m], self.extents[2 * m :]

    @property
    def shape(self):
        extents = self.modes[0]
        return int(np.prod(extents[:-1])), extents[-1]

    @property
    def factor_shapes(self):
        extents, widths, numbers = self.modes
        own = [numbers.index(number) for number in range(max(numbers) + 1)]
        return [(extents[m], widths[m]) for m in own] + [(int(np.prod(widths[:-1])), widths[-1])]

    def table(self, matrices, core):
        """Return the rates of all combinations of components in all cells: (..., I_1, I_2, ..., C_1, C_2, ...)."""
        _, widths, _ = self.modes
        i, q = "ijklm"[: len(widths)], "abcde"[: len(widths)]
        core = core.reshape(*core.shape[:-2], *widths)
        terms = ",".join([f"...{q}"] + [f"...{x}{y}" for x, y in zip(i, q, strict=True)])
        return np.einsum(f"{terms}->...{i}{q}", core, *matrices)

    def component_rates(self, factors):
        many = np.shape(factors[0])[:-2]
        return self.table([factors[n] for n in self.modes[2]], factors[-1]).reshape(*many, *self.shape, -1)

    def sums(self, split):
        extents, widths, numbers = self.modes
        table = (split * self.observed[..., None]).reshape(*extents, *widths)
        found = [0.0] * (max(numbers) + 1)
        for m, number in enumerate(numbers):
            found[number] = found[number] + self.over_others(table, m)
        return [*found, table.sum(axis=tuple(range(len(extents)))).reshape(self.factor_shapes[-1])]

    def over_others(self, table, mode):
        m = len(self.modes[0])
        return table.sum(axis=tuple(axis for axis in range(2 * m) if axis % m != mode))

    def exposure(self, factors, mode, row=None):
        extents, _, numbers = self.modes
        matrices, seen = [factors[n] for n in numbers], self.observed.reshape(*extents, *(1,) * len(extents))
        if mode == len(factors) - 1:
            table = self.table(matrices, np.ones_like(factors[-1])) * seen
            return table.sum(axis=tuple(range(len(extents)))).reshape(self.factor_shapes[-1])
        every = 0.0
        for m in (m for m, number in enumerate(numbers) if number == mode):
            ones = [np.ones_like(f) if n == m else f for n, f in enumerate(matrices)]
            every = every + self.over_others(self.table(ones, factors[-1]) * seen, m)
        return every if row is None else every[row]

    def in_turn(self, mode):
        return self.modes[2].count(mode) > 1


# Samplers.


def invert(log_mass, rng):
    """Draw an index along the last axis of tables of unnormalized log-masses."""
    mass = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True))
    steps = np.cumsum(mass, axis=-1)
    height = rng.random(steps.shape[:-1]) * steps[..., -1]
    return (steps <= height[..., None]).sum(axis=-1)


def draw_counts(released, rate, alpha, rng):
    """Draw counts from their law given releases and rates, the noise summed out."""
    return invert(log_weights(released, rate, alpha, enough(released, rate, alpha)), rng)


def draw_minimum(order, argument, rng):
    """Draw from the Bessel law: proportional to (argument / 2)^(2 n + order) / (n! (n + order)!)."""
    top = int(np.max(argument, initial=0) / 2 + 10 * np.sqrt(np.max(argument, initial=0) + 1) + 30)
    n = np.arange(top + 1)
    order = np.asarray(order)[..., None]
    half = np.asarray(argument)[..., None] / 2
    return invert(xlogy(2 * n, half) - gammaln(n + 1) - gammaln(n + order + 1), rng)


def draw_counts_by_noise(released, rate, alpha, plus, minus, rng):
    """One step of the papers' sampler: noise rates, minimum, both noises, count. Returns `(counts, plus, minus)`."""
    rate_plus, rate_minus = (rng.gamma(1 + noise, alpha) for noise in (plus, minus))
    least = draw_minimum(np.abs(released), 2 * np.sqrt(rate_minus * (rate_plus + rate)), rng)
    together = least + np.maximum(released, 0)
    counts = rng.binomial(together, rate / (rate + rate_plus))
    return counts, together - counts, least + np.maximum(-released, 0)


def split_counts(counts, component_rates, rng):
    share = component_rates / component_rates.sum(axis=-1, keepdims=True)
    return rng.multinomial(counts, share)


def gibbs(model, released, alpha, factors, sweeps, rng, method="collapsed", fixed=None):
    """Yield `(factors, counts)` after each sweep."""
    noise = [np.zeros_like(released)] * 2
    for _ in range(sweeps):
        parts = model.component_rates(factors)
        if method == "collapsed":
            counts = draw_counts(released, parts.sum(axis=-1), alpha, rng)
        else:
            counts, *noise = draw_counts_by_noise(released, parts.sum(axis=-1), alpha, *noise, rng)
        sums = model.sums(split_counts(counts, parts, rng))
        factors = model.draw_factors_given(factors, sums, rng, fixed)
        yield factors, counts


# Exact posteriors of tiny models.


@dataclass
class Exact:
    """The evidence, the mean of each free entry, and the mean count of each cell."""

    log_evidence: float
    factors: list
    counts: np.ndarray
    second: list


def exact_by_quadrature(model, released, alpha, factors, free, points=64, deep=1e-13):
    """Integrate over the entries of `free` [(factor, row, column), ...]; all others stay as in `factors`.

    The trapezoidal rule in the logarithm of each entry: for gamma-like densities its error falls exponentially. A grid
    leaves `deep` of the prior's mass below it and as much, and a bit, above.
    """
    from scipy.stats import gamma

    released, alpha = np.asarray(released), np.broadcast_to(alpha, np.shape(released))
    axes, log_densities = [], []
    for m, i, j in free:
        shape, rate = (p[i, j] for p in model.priors[m])
        low, high = np.log(gamma.ppf(deep, shape, scale=1 / rate)), np.log(gamma.isf(deep, shape, scale=1 / rate))
        u, step = np.linspace(low, high + 0.5, points, retstep=True)
        axes.append(np.exp(u))
        log_densities.append(shape * (np.log(rate) + u) - gammaln(shape) - rate * np.exp(u) + np.log(step))
    grids = np.meshgrid(*axes, indexing="ij")
    log_weight = np.zeros(grids[0].shape)
    for n, terms in enumerate(log_densities):
        log_weight += terms.reshape([-1 if m == n else 1 for m in range(len(axes))])
    means = []
    for row, col in zip(*np.nonzero(model.observed), strict=True):
        rate = cell_rate(model, factors, free, grids, row, col)
        log_likelihood, mean = law_on_grid(int(released[row, col]), rate, float(alpha[row, col]))
        log_weight += log_likelihood
        means.append((row, col, mean))
    log_evidence = logsumexp(log_weight)
    posterior = np.exp(log_weight - log_evidence)
    counts = np.full(model.shape, np.nan)
    for row, col, mean in means:
        counts[row, col] = (posterior * mean).sum()
    first, second = ([np.array(f, dtype=float) for f in factors] for _ in range(2))
    for (m, i, j), x in zip(free, grids, strict=True):
        first[m][i, j], second[m][i, j] = (posterior * x).sum(), (posterior * x * x).sum()
    return Exact(float(log_evidence), first, counts, second)


def cell_rate(model, factors, free, grids, row, col):
    """Return one cell's rate on the whole grid of the free entries."""

    def entry(m, i, j):
        at = (m, i, j) if not (model.kind == "undirected" and m == 1) else (m, min(i, j), max(i, j))
        return grids[free.index(at)] if at in free else factors[m][i, j]

    if isinstance(model, Tucker):
        extents, widths, numbers = model.modes
        indices = (*np.unravel_index(row, extents[:-1]), col)
        total = 0.0
        for at, q in enumerate(product(*map(range, widths))):
            part = entry(len(factors) - 1, at // widths[-1], q[-1])
            for number, i, k in zip(numbers, indices, q, strict=True):
                part = part * entry(number, int(i), k)
            total = total + part
        return total
    if model.kind != "cp":
        communities = range(model.n_components)
        return sum(entry(0, row, c) * entry(1, c, d) * entry(0, col, d) for c, d in product(communities, repeat=2))
    indices = (*np.unravel_index(row, model.extents[:-1]), col)
    total = 0.0
    for k in range(model.n_components):
        part = 1.0
        for m, i in enumerate(indices):
            part = part * entry(m, int(i), k)
        total = total + part
    return total


def exact_rank_one(released, alpha, row_prior, column_prior, top):
    """Evidence and mean counts of a matrix with one component: a sum over all tables of counts up to `top`.

    Given the counts, the row factors integrate to gamma functions and the column factors to a Dirichlet integral and
    one integral over their sum, which depends on the counts only by their total.
    """
    released = np.asarray(released)
    rows, cols = released.shape
    (a, b), (c, d) = row_prior, column_prior
    u = np.linspace(-40, 12, 4000)
    total_phi = np.exp(u)
    noise = log_noise_constant(alpha)
    values = np.arange(top + 1)
    tables = np.meshgrid(*([values] * released.size), indexing="ij")
    log_p = np.zeros(tables[0].shape)
    for y, o in zip(tables, released.ravel(), strict=True):
        log_p += noise + np.abs(o - y) * np.log(alpha) - gammaln(y + 1)
    for i in range(rows):
        log_p += gammaln(a + sum(tables[i * cols : (i + 1) * cols])) - gammaln(a) + a * np.log(b)
    for j in range(cols):
        log_p += gammaln(c + sum(tables[j::cols])) - gammaln(c) + c * np.log(d)
    everything = sum(tables)
    most = int(everything.max())
    n = np.arange(most + 1)[:, None]
    # phi = S w with S^(cols c + n - 1) and w Dirichlet: the integral over w gives 1 / Gamma(cols c + n).
    integrand = (cols * c + n) * u - d * total_phi - (rows * a + n) * np.log(b + total_phi) + np.log(u[1] - u[0])
    by_total = logsumexp(integrand, axis=1) - gammaln(cols * c + n[:, 0])
    log_p += by_total[everything]
    log_evidence = logsumexp(log_p)
    posterior = np.exp(log_p - log_evidence)
    means = np.array([(posterior * y).sum() for y in tables]).reshape(rows, cols)
    return float(log_evidence), means


# Variational inference.


def log_bessel_i(order, argument):
    return np.log(ive(order, argument)) + argument


def bessel_mean(order, argument):
    return argument / 2 * ive(order + 1, argument) / ive(order, argument)


def bessel_mode(order, argument):
    return np.floor(argument**2 / (2 * (order + np.hypot(order, argument))))


def gamma_divergence(shape, rate, prior_shape, prior_rate):
    """KL divergence of Gamma(shape, rate) from its prior."""
    return (
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * (np.log(rate) - np.log(prior_rate))
        + shape * (prior_rate - rate) / rate
    )


def dirichlet_divergence(shape, prior):
    """KL divergence of Dirichlet laws of columns from their priors."""

    def log_norm(x):
        return gammaln(x.sum(axis=0)) - gammaln(x).sum(axis=0)

    moved = ((shape - prior) * (digamma(shape) - digamma(shape.sum(axis=0)))).sum(axis=0)
    return (log_norm(shape) - log_norm(prior) + moved).sum()


class Cavi:
    """Coordinate ascent with the whole table of components in memory.

    One iteration takes the factors in turn: the counts' law, then the factor's gammas. With noise of its own
    (all methods but "collapsed") the noise rates are brought up to date before the counts. A fixed factor is known:
    its mean counts alone, and it has no divergence. Dirichlet laws have their shapes and, as rates, the sums of these.
    """

    def __init__(self, model, released, alpha, method, start, fixed=None):
        self.model, self.method = model, method
        self.fixed = fixed or [False] * len(start)
        self.released = np.asarray(released).reshape(model.shape)
        self.alpha = np.broadcast_to(alpha, model.shape) if np.ndim(alpha) == 0 else np.reshape(alpha, model.shape)
        self.factors = [(np.array(shape, dtype=float), np.array(rate, dtype=float)) for shape, rate in start]
        self.factors = [
            (shape, np.broadcast_to(shape.sum(axis=0), shape.shape)) if known else (shape, rate)
            for (shape, rate), known in zip(self.factors, model.dirichlet, strict=True)
        ]
        self.noise = [np.zeros(model.shape), np.zeros(model.shape)]
        self.elbos = []

    @property
    def means(self):
        return [shape / rate for shape, rate in self.factors]

    @property
    def geometric(self):
        return [
            shape / rate if known else np.exp(digamma(shape) - (digamma(rate) if dirichlet else np.log(rate)))
            for (shape, rate), known, dirichlet in zip(self.factors, self.fixed, self.model.dirichlet, strict=True)
        ]

    def noise_rates(self):
        return [self.alpha * np.exp(digamma(1 + noise)) for noise in self.noise]

    def delta_rate(self):
        """Geometric mean of noise rate plus count rate to first order: exp(ln E - Var / (2 E^2))."""
        model = self.model
        first = model.component_rates(self.means)
        squares = [shape * (shape + 1) / rate**2 for shape, rate in self.factors]
        variance = (model.component_rates(squares) - first**2).sum(axis=-1)
        mean_noise = self.alpha * (1 + self.noise[0])
        mean = mean_noise + first.sum(axis=-1)
        return mean * np.exp(-(variance + self.alpha**2 * (1 + self.noise[0])) / (2 * mean**2))

    def mean_counts(self):
        """Bring the law of the counts up to date and return its means; those held out are Poisson counts."""
        rate = self.model.rates(self.geometric)
        return np.where(self.model.observed, self.mean_counts_of_releases(rate), rate)

    def mean_counts_of_releases(self, rate):
        if self.method == "collapsed":
            return CellLaw(self.released, rate, self.alpha).mean
        plus, minus = self.noise_rates()
        upper = self.delta_rate() if self.method == "published" else plus + rate
        argument = 2 * np.sqrt(minus * upper)
        law = bessel_mean if self.method == "bessel-mean" else bessel_mode
        self.least = law(np.abs(self.released), argument)
        together = self.least + np.maximum(self.released, 0)
        counts = together * rate / (rate + plus)
        self.noise = [together - counts, self.least + np.maximum(-self.released, 0)]
        return counts

    def iterate(self):
        model = self.model
        for mode, (prior_shape, prior_rate) in enumerate(model.priors):
            if self.fixed[mode]:
                continue
            counts = self.mean_counts()
            parts = model.component_rates(self.geometric)
            split = counts[..., None] * parts / parts.sum(axis=-1, keepdims=True)
            shape = prior_shape + model.sums(split)[mode]
            if prior_rate is None:
                self.factors[mode] = (shape, np.broadcast_to(shape.sum(axis=0), shape.shape))
                continue
            if not model.in_turn(mode):
                self.factors[mode] = (shape, prior_rate + model.exposure(self.means, mode))
                continue
            rate = self.factors[mode][1].copy()
            self.factors[mode] = (self.factors[mode][0].copy(), rate)
            for i in range(len(rate)):
                rate[i] = prior_rate[i] + model.exposure(self.means, mode, i)
                self.factors[mode][0][i] = shape[i]
        self.elbos.append(self.elbo())

    def elbo(self):
        model = self.model
        rate, mean_rate = model.rates(self.geometric), model.rates(self.means)
        if self.method == "collapsed":
            cells = CellLaw(self.released, rate, self.alpha).log_likelihood + rate
        else:
            cells = self.noisy_cells(rate)
        total = (np.where(model.observed, cells, rate) - mean_rate)[model.counted].sum()
        for mode, ((shape, r), prior) in enumerate(zip(self.factors, model.priors, strict=True)):
            if self.fixed[mode]:
                continue
            if prior[1] is None:
                total -= dirichlet_divergence(shape, prior[0])
                continue
            terms = gamma_divergence(shape, r, *prior)
            once = np.triu(np.ones_like(terms)) if model.kind == "undirected" and mode == 1 else 1.0
            total -= (terms * once).sum()
        return float(total)

    def noisy_cells(self, rate):
        plus, minus = self.noise_rates()
        order, argument = np.abs(self.released), 2 * np.sqrt(minus * (plus + rate))
        if self.method == "bessel-mean":
            cells = log_bessel_i(order, argument)
        else:
            m = bessel_mode(order, argument)
            cells = (2 * m + order) * np.log(argument / 2) - gammaln(m + 1) - gammaln(m + order + 1)
        cells = cells + self.released / 2 * np.log((plus + rate) / minus)
        for noise in self.noise:
            cells = cells - self.alpha * (1 + noise)
            cells = cells - gamma_divergence(1 + noise, 1 / self.alpha, 1.0, (1 - self.alpha) / self.alpha)
        return cells

    def run(self, iterations, tolerance=0.0):
        for _ in range(iterations):
            self.iterate()
            if len(self.elbos) > 1 and abs(self.elbos[-1] - self.elbos[-2]) < tolerance * abs(self.elbos[-1]):
                break
        return self
