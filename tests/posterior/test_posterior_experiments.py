"""The experiments of the thesis run, print their tables, and draw their pictures where matplotlib is installed."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
FOLDER = Path(__file__).parents[2] / "benches" / "experiments"


@pytest.mark.parametrize(
    ("name", "said"),
    [("posterior_regression", "census"), ("posterior_naive_bayes", "what the thesis sampler really spends")],
)
def test_small_version_of_an_experiment_runs(name, said, output, tmp_path):
    python_path = os.pathsep.join(path for path in sys.path if path)
    picture = tmp_path / "picture.png"
    arguments = [str(FOLDER / f"{name}.py"), "--quick", "--picture", str(picture)]
    printed = output("", *arguments, cwd=tmp_path, env={"PYTHONPATH": python_path})
    assert said in printed
    assert picture.is_file() == (find_spec("matplotlib") is not None)
