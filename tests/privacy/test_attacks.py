"""What an attacker tries: the last bits of a float, a forked generator, a known stream."""

import math
import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from quincunx.privacy import GaussianMechanism, LaplaceMechanism, privatize

DRAWS = 20_000


def textbook_laplace(x, rng, size):
    """The inverse distribution function of Laplace(1) at uniform multiples of 2**-53, in floats."""
    u = rng.integers(1, 2**53, size=size) * 2.0**-53 - 0.5
    return x - np.sign(u) * np.log1p(-2 * np.abs(u))


def impossible_from(x, outputs):
    """Whether no uniform number gives these textbook outputs for x; the few that come near each are all tried."""
    distance = np.abs(outputs - x)
    center = np.rint(-np.expm1(-distance) * 2.0**52)  # 2 |u| as a multiple of 2**-52
    possible = np.zeros(len(outputs), dtype=bool)
    for step in range(-12, 13):
        twice = (center + step) * 2.0**-52
        inside = (twice >= 0) & (twice < 1)
        magnitude = -np.log1p(-np.where(inside, twice, 0.0))
        possible |= inside & ((x + magnitude == outputs) | (x - magnitude == outputs))
    return ~possible


def test_one_output_betrays_the_textbook_laplace_and_never_ours():
    rng = np.random.default_rng(1)
    from_zero, from_one = textbook_laplace(0.0, rng, DRAWS), textbook_laplace(1.0, rng, DRAWS)
    assert impossible_from(0.0, from_zero).mean() == 0  # the check itself accepts what is possible
    assert impossible_from(1.0, from_one).mean() == 0
    textbook = impossible_from(0.0, from_one).mean()
    assert 0.7 < textbook < 0.9

    mechanism = LaplaceMechanism(1.0, 0.0, 1.0)
    ours = mechanism.release(np.ones(DRAWS)).values
    # From 0 every multiple of the step has a positive probability, within e of that from 1.
    on_grid = ours / mechanism.step == np.rint(ours / mechanism.step)
    ratio = mechanism.log_likelihood(ours, 1.0) - mechanism.log_likelihood(ours, 0.0)
    impossible = ~(on_grid & (np.abs(ratio) <= 1 + 1e-12))
    assert impossible.mean() == 0
    print(f"impossible outputs: textbook {textbook:.1%}, ours {impossible.mean():.1%}")


def test_gaussian_outputs_lie_on_one_grid_whatever_the_input():
    mechanism = GaussianMechanism(1.0, 1e-6, sensitivity=1)
    for x in (0.0, 1.0, 1 / 3, 1e-300, -math.pi):
        values = mechanism.release(np.full(2000, x)).values
        assert np.all(values / mechanism.step == np.rint(values / mechanism.step))


def test_low_bits_of_the_output_do_not_depend_on_the_input():
    # Steps modulo 16 are uniform up to 1e-5 for either input: a chi-square of 15 bins, false-alarm rate 1e-6 at 59.6.
    mechanism = LaplaceMechanism(1.0, 0.0, 1.0)
    for x in (0.0, 1.0, 0.3):
        steps = (mechanism.release(np.full(40_000, x), insecure_seed=11).values / mechanism.step).astype(int)
        counts = np.bincount(steps % 16, minlength=16)
        assert ((counts - 2500) ** 2 / 2500).sum() < 59.6


FORK = """
    import os, sys
    import numpy as np
    from quincunx.privacy import privatize
    zeros = np.zeros(64, dtype=int)
    privatize(zeros, epsilon=0.01)  # whatever state there is, it is there before the fork
    pipes = []
    for _ in range(3):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, privatize(zeros, epsilon=0.01).values.tobytes())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    mine = privatize(zeros, epsilon=0.01).values.tobytes()
    draws = [mine] + [os.read(read, 64 * 8) for read in pipes]
    assert all(len(draw) == 64 * 8 for draw in draws)
    assert len(set(draws)) == 4, "a child repeats the noise of its parent or sibling"
    words = np.frombuffer(b"".join(draws), dtype=np.int64).reshape(4, 64)
    for i in range(4):
        for j in range(i):
            assert (words[i] == words[j]).sum() < 8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_children_do_not_repeat_their_parents_noise():
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORK)], check=True, timeout=60)


def _draw(_):
    return privatize(np.zeros(32, dtype=int), epsilon=0.01).values.tolist()


def test_spawned_workers_do_not_share_noise():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        draws = [tuple(draw) for draw in pool.map(_draw, range(4), chunksize=1)]
    assert len(set(draws)) == 4


def test_numpys_seed_does_not_touch_the_noise():
    np.random.seed(3)  # noqa: NPY002
    one = privatize(np.zeros(64, dtype=int), epsilon=0.01).values
    np.random.seed(3)  # noqa: NPY002
    assert not np.array_equal(one, privatize(np.zeros(64, dtype=int), epsilon=0.01).values)
