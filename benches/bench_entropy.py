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
STRIPS = [("triangular-kagome", 18), ("3-12-12", 18), ("modified-bathroom", 18), ("3-6-24", 20), ("triangular", 10)]


def timed(call, *arguments, **named):
    start = time.perf_counter()
    return call(*arguments, **named), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also the targets of a minute and more")
    options = parser.parse_args()
    print(f"{'lattice':<20}{'asked':>6}{'proved':>8}{'bond':>6}{'seconds':>9}")
    for lattice, digits in SHORT + MEDIUM + (LONG if options.long else []):
        bounds, seconds = timed(entropy_bounds, lattice, digits=digits)
        print(f"{lattice:<20}{digits:>6}{bounds.digits:>8}{bounds.evidence['bond_dimension']:>6}{seconds:>9.2f}")
        keep(f"growth constant of {lattice}, {bounds.digits} decimals proved", seconds)
    print("strips and rings")
    for lattice, width in [("square", 16), ("kagome", 10), ("4-8-8", 10), ("triangular", 14), ("3-12-12", 7)]:
        bounds, seconds = timed(entropy_bounds, lattice, width=width)
        print(f"{lattice:<20}{width:>6}{bounds.digits:>8}{'':>6}{seconds:>9.2f}")
        keep(f"growth constant of {lattice}, {bounds.digits} decimals proved", seconds)
    print("strips and rings in double-doubles")
    for lattice, digits in STRIPS + ([("triangular", 12)] if options.long else []):
        bounds, seconds = timed(entropy_bounds, lattice, digits=digits)
        print(f"{lattice:<20}{digits:>6}{bounds.digits:>8}{bounds.evidence['width']:>6}{seconds:>9.2f}")
        keep(f"growth constant of {lattice}, {bounds.digits} decimals proved", seconds)
    print("windows")
    for lattice, width in [("martini", 17), ("martini", 20)] + ([("martini", 23)] if options.long else []):
        bounds, seconds = timed(entropy_bounds, lattice, width=width)
        print(f"{lattice:<20}{width:>6}{bounds.digits:>8}{'':>6}{seconds:>9.2f}")
        keep(f"growth constant of {lattice}, {bounds.digits} decimals proved", seconds)
    _, seconds = timed(expected_count_polynomial, 10, 10)
    print(f"expected count polynomial of 10 x 10 cells: {seconds:.2f} s")
    quenched, seconds = timed(quenched_entropy, 11, 100, n_draws=10_000, rng=0)
    print(f"quenched entropy, 11 x 100 cells, 10000 draws: error {quenched.standard_error:.1e}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
