"""Check proved intervals without the library: python tests/check_intervals.py tests/known/intervals.json.

Both ends of each entry with a trial vector are proved again by theorem D of docs/mathematics/entropy.md, from the
lattice's weights below, in balls: integers over a power of two, within an error each. Others are held against these.
"""

import json
import sys
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from operator import mul

from mpmath import iv, mp

iv.prec = mp.prec = 640

#: Sites a letter, half steps?, occupied sites of letters, faces?, and the weight: of letters a b over c d round a face,
#: or of letters s over t with bonds p and q on both sides. What they stand for: docs/mathematics/entropy.md.
OPERATORS = {
    "square": (1, False, (0, 1), True, lambda z, a, b, c, d: a + b < 2 and c + d < 2 and a + c < 2 and b + d < 2),
    "king": (1, False, (0, 1), True, lambda z, a, b, c, d: a + b + c + d < 2),
    "4-8-8": (4, False, (0, 1, 1), True, lambda z, a, b, c, d: 1 + z * (a != 1 and b != 2) + z * (c != 1 and d != 2)),
    "honeycomb": (
        2,
        True,
        (0, 1, 1),
        False,
        lambda z, p, q, s, t: p * (s == 1) + (s == 2) * (t == 1) == 0 and q == (t == 2),
    ),
    "kagome": (
        3,
        True,
        (0, 1),
        False,
        lambda z, p, q, s, t: z * (p + s < 2) * (t == 0) if q else (p + s < 2) + z * (p + s + t == 0),
    ),
    "matchings of square": (1, False, (0, 1), False, lambda z, p, q, s, t: z**q if p + q + s + t < 2 else 0),
    "matchings of 4-8-8": (4, False, (0, 1), False, lambda z, p, q, s, t: z**q * diamond(z, (p, s, q, t))),
}


def diamond(z, around):
    """Return the sum over matchings of a cycle of four vertices without those that are covered from outside."""
    free = [not around[i] and not around[i - 1] for i in range(4)]  # bonds between neighbors
    return 1 + z * sum(free) + z**2 * (free[0] * free[2] + free[1] * free[3])


def operator_of(entry):
    """Return the name of an entry's operator."""
    return entry["lattice"] if entry["model"] == "independent-sets" else f"{entry['model']} of {entry['lattice']}"


def torus(name, z, rows):
    """Return the matrix whose n-th power has the weight of a torus of n letters and so many rows as its trace."""
    _, half, occupied, faces, weight = OPERATORS[name]
    weight = cache(weight)
    letters, following = range(len(occupied)), [*range(1, rows), 0]
    words = list(product(letters if faces else (0, 1), repeat=rows))

    def entry(left, right):
        if faces:
            return prod(weight(z, left[i], right[i], left[j], right[j]) for i, j in enumerate(following)) * z ** sum(
                occupied[a] for a in left
            )
        paths = {(s, s): 1 for s in letters}  # from the first row's letter to the next one's
        for i, (p, q) in enumerate(zip(left, right, strict=True)):
            longer = {}
            for (first, s), t in product(paths, letters):  # without those of weight zero
                above, below = (t, s) if half and i % 2 else (s, t)
                if step := weight(z, p, q, above, below) * z ** occupied[s]:
                    longer[first, t] = longer.get((first, t), 0) + paths[first, s] * step
            paths = longer
        return sum(paths.get((s, s), 0) for s in letters)

    if faces:  # those that may stand beside an empty one
        words = [word for word in words if all(weight(z, word[i], 0, word[j], 0) for i, j in enumerate(following))]
    return [[entry(left, right) for right in words] for left in words]


def column(name, z, trial, layers):
    """Return M, N or Q (no, one, two layers): traces of powers are <psi, psi>, <psi, T psi>, <T psi, T psi>."""
    _, _, occupied, faces, weight = OPERATORS[name]
    matrix = {tuple(step[:-1]): step[-1] for step in trial["steps"]}  # by letters, of a face's both upper corners
    letters, pairs = range(len(occupied)), {0: [], 1: [(0, 1)], 2: [(1, 0), (1, 2)]}[layers]
    states = list(product(letters, repeat=layers + 1) if faces else product((0, 1), repeat=layers))
    power = {0: (0, -1), 1: (0, 0), 2: (1, 1)}[layers]
    blocks = {}
    for left, right in product(states, states):
        for word in [left] if faces else product(letters, repeat=layers + 1):
            around = (
                [(left[i], right[i], left[j], right[j]) for i, j in pairs]
                if faces
                else [(left[k], right[k], word[i], word[j]) for k, (i, j) in enumerate(pairs)]
            )
            factor = prod(weight(z, *corners) for corners in around) * z ** (power[1] * occupied[word[power[0]]])
            ends = [(word[k], right[k]) if faces else (word[k],) for k in (0, layers)]
            if factor and all(end in matrix for end in ends):
                blocks.setdefault((left, right), []).append((factor, *(matrix[end] for end in ends)))
    heights = {left: (len(b[0][1]), len(b[0][2])) for (left, _), b in blocks.items()}
    places = [(state, i, k) for state, (up, down) in heights.items() for i, k in product(range(up), range(down))]
    return [
        [sum(f * a[i][j] * b[k][m] for f, a, b in blocks.get((left, right), ())) for right, j, m in places]
        for left, i, k in places
    ]


def powers(matrix, scale, squarings, bits=640):
    """Yield enclosures of the logarithms of |tr X^(2^k)| and of a bound on the norm of X^(2^k), k = 0, 1, ..."""
    entries = [[int(x * 2**bits // scale) for x in row] for row in matrix]
    error, exponent, size = 1, iv.log(iv.mpf(scale)) - bits * iv.log(2), len(matrix)
    for step in range(squarings + 1):
        if step:
            most = max(abs(x) for row in entries for x in row) + error
            shift = max(0, 2 * most.bit_length() + size.bit_length() - bits)
            columns = list(zip(*entries, strict=True))
            entries = [[sum(map(mul, row, col)) >> shift for col in columns] for row in entries]
            error, exponent = (2 * size * most * error >> shift) + 2, 2 * exponent + shift * iv.log(2)
        trace, wide = abs(sum(row[i] for i, row in enumerate(entries))), size * error
        norm = iv.sqrt(iv.mpf(sum(x * x for row in entries for x in row))) + wide
        yield (
            iv.log(iv.mpf([trace - wide, trace + wide])) + exponent if trace > wide else None,
            iv.log(norm) + exponent,
        )


def ends(entry):
    """Return both ends of a growth constant as its trial vector proves them: Rayleigh's and Temple's."""
    name, z, n, rows = operator_of(entry), Fraction(entry["activity"]), entry["ring"], entry["rows"]
    size = OPERATORS[name][0]
    norm, energy, variance = (column(name, z, entry["trial"], layers) for layers in range(3))
    unit = 4 ** entry["trial"]["bits"]
    most = [list(powers(matrix, unit, 96)) for matrix in (norm, energy)]
    # (|tr N^m| / D)^(1/m) <= theta_N and theta_M <= |M^m|^(1/m), m = 2^96.
    lower = iv.exp((most[1][-1][0] - iv.log(len(energy)) - most[0][-1][1]) / 2**96 / size)
    k = n.bit_length() - 1
    log_m, log_n, log_q = (list(powers(matrix, unit, k))[k][0] for matrix in (norm, energy, variance))
    log_torus = list(powers(torus(name, int(z) if z == int(z) else z, rows), 1, k, 100))[k][0]
    # With b = beta / rho, Lambda <= (sigma - beta rho) / (rho - beta) = rho (1 + (sigma / rho^2 - 1) / (1 - b)).
    second = iv.exp(iv.log(iv.exp(log_torus - rows * (log_n - log_m)) - 1) / rows)
    if not second.b < 1:
        raise ValueError("the torus bounds no gap")
    excess = (iv.exp(log_q + log_m - 2 * log_n) - 1) / (1 - second)
    return lower.a, iv.exp((log_n - log_m + iv.log(1 + excess)) / n / size).b


def check(entries):
    """Return how many entries were proved again and how many lie beside these; ValueError at one that fails."""
    proved = {}
    for entry in entries:
        lower, upper = (iv.mpf(entry[end]) for end in ("lower", "upper"))
        name = ", ".join(str(entry[key]) for key in ("lattice", "model", "activity", "method", "lower"))
        if not lower.b <= upper.a:
            raise ValueError(f"{name}: the ends are in the wrong order")
        if "trial" in entry:
            low, high = ends(entry)
            if not (lower.b <= low and high <= upper.a):
                raise ValueError(f"{name}: its trial vector proves [{iv.nstr(low, 40)}, {iv.nstr(high, 40)}] only")
        proved.setdefault((entry["lattice"], entry["model"], entry["activity"]), []).append(
            (lower, upper, name, "trial" in entry)
        )
    beside = 0
    for same in proved.values():
        for (lower, _, name, _), (_, upper, other, _) in product(same, same):
            if not lower.a <= upper.b:
                raise ValueError(f"{name} and {other} have no number in common")
        beside += sum(not again for *_, again in same) if any(again for *_, again in same) else 0
    return sum("trial" in entry for entry in entries), beside


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("proved again: {}; beside these: {}".format(*check(json.load(file)["intervals"])))
