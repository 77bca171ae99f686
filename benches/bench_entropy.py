"""Growth constants: decimals proved a second, by lattice and route, beside the strips and rings of the same package.

    python benches/bench_entropy.py [--long]

The two routes are each other's peer: no other program that we found proves these digits.
"""

import argparse
import time

from measuring import keep
from quincunx.entropy import entropy_bounds, expected_count_polynomial, quenched_entropy

SHORT = [("square", 14), ("king", 14), ("4-8-8", 14), ("honeycomb", 14), ("kagome", 14)]
MEDIUM = [("square", 30), ("king", 28), ("4-8-8", 24), ("honeycomb", 32), ("kagome", 32)]
LONG = [("4-8-8", 40), ("honeycomb", 45), ("kagome", 45), ("square", 40), ("square", 45), ("king", 35)]
RINGS = [("square", 16), ("kagome", 10), ("4-8-8", 10), ("triangular", 14), ("3-12-12", 7)]
STRIPS = [("triangular-kagome", 18), ("3-12-12", 18), ("modified-bathroom", 18), ("3-6-24", 20), ("triangular", 10)]


def timed(call, *arguments, **named):
    start = time.perf_counter()
    return call(*arguments, **named), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also the targets of a minute and more")
    options = parser.parse_args()
    far = options.long
    heads = f"{'lattice':<20}{'asked':>6}{'proved':>8}{'bond':>6}{'seconds':>9}"
    parts = [
        (heads, "digits", "bond_dimension", SHORT + MEDIUM + LONG * far),
        ("strips and rings", "width", None, RINGS),
        ("strips and rings in double-doubles", "digits", "width", STRIPS + [("triangular", 12)] * far),
        ("windows", "width", None, [("martini", 17), ("martini", 20)] + [("martini", 23)] * far),
    ]
    for title, asked, shown, rows in parts:
        print(title)
        for lattice, number in rows:
            bounds, seconds = timed(entropy_bounds, lattice, **{asked: number})
            found = bounds.evidence[shown] if shown else ""
            print(f"{lattice:<20}{number:>6}{bounds.digits:>8}{found:>6}{seconds:>9.2f}")
            keep(f"growth constant of {lattice}, {bounds.digits} decimals proved", seconds)
    _, seconds = timed(expected_count_polynomial, 10, 10)
    print(f"expected count polynomial of 10 x 10 cells: {seconds:.2f} s")
    quenched, seconds = timed(quenched_entropy, 11, 100, n_draws=10_000, rng=0)
    print(f"quenched entropy, 11 x 100 cells, 10000 draws: error {quenched.standard_error:.1e}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
