"""A fit that is killed while it saves leaves the file of before or the file of after, whole."""

import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest

from quincunx.factorization import PoissonFactorization

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork and no kill -9")

# For each line that it reads: a child that saves the same fit again and again, until it is killed.
SAVING = """
import os, sys
import numpy as np
from quincunx.factorization import PoissonFactorization
fit = PoissonFactorization(3, n_warmup=0, n_draws=400, thin=1, n_chains=1, random_state=1)
counts = np.arange(600).reshape(30, 20) % 7
fit.fit(counts, alpha=0.5)
while sys.stdin.readline():
    child = os.fork()
    while not child:
        fit.save(sys.argv[1])
        print(os.getpid(), flush=True)
    print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def killed_while_saving(python, target, moments, times):
    process = python(SAVING, str(target), stdin=subprocess.PIPE)
    for _ in range(times):
        process.stdin.write("go\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        time.sleep(moments.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        while "ended" not in (line := process.stdout.readline()):
            assert line
        assert line.endswith("ended with -9\n")
        found = PoissonFactorization.load(target)
        assert found.components_.shape == (3, 20)
        assert np.isfinite(found.components_).all()


def test_a_fit_killed_during_its_save_leaves_a_whole_file(python, tmp_path):
    killed_while_saving(python, tmp_path / "fit.npz", random.Random(1), 3)


@pytest.mark.slow
def test_fifty_kills_during_a_save_lose_nothing(python, tmp_path):
    killed_while_saving(python, tmp_path / "fit.npz", random.Random(2), 50)
    assert "fit.npz" in os.listdir(tmp_path)
