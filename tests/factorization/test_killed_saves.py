"""A fit that is killed while it saves leaves the file of before or the file of after, whole."""

import os
import random
import sys
import time

import numpy as np
import pytest

from quincunx.factorization import PoissonFactorization

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")

# Saves the same fit again and again, with its number of kept draws growing: each file is told from the one before.
SAVING = """
import sys
import numpy as np
from quincunx.factorization import PoissonFactorization
fit = PoissonFactorization(3, n_iter=400, burn_in=0, thin=1, random_state=1)
counts = np.arange(600).reshape(30, 20) % 7
fit.fit(counts, alpha=0.5)
while True:
    fit.save(sys.argv[1])
    print("saved", flush=True)
"""


def killed_while_saving(python, target, moments):
    process = python(SAVING, str(target))
    assert process.stdout.readline() == "saved\n"
    time.sleep(moments.uniform(0.0, 0.05))
    process.kill()
    process.wait(timeout=30)
    assert process.returncode == -9
    found = PoissonFactorization.load(target)
    assert found.components_.shape == (3, 20)
    assert np.isfinite(found.components_).all()


def test_a_fit_killed_during_its_save_leaves_a_whole_file(python, tmp_path):
    target, moments = tmp_path / "fit.npz", random.Random(1)
    for _ in range(3):
        killed_while_saving(python, target, moments)


@pytest.mark.slow
def test_fifty_kills_during_a_save_lose_nothing(python, tmp_path):
    target, moments = tmp_path / "fit.npz", random.Random(2)
    for _ in range(50):
        killed_while_saving(python, target, moments)
    assert "fit.npz" in os.listdir(tmp_path)
