"""The experiments of the paper run on data of their own and say what they should."""

import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benches" / "experiments"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_posterior_means_of_shares_are_never_trivial():
    ((_, _, (error, trivial, _), _),) = load("ldp_histogram").run(5, [0.5], [300])
    assert trivial == 0
    assert error < 0.5


def test_intervals_hold_the_truth_as_often_as_they_say():
    assert all(row[4] for row in load("ldp_coverage").run(10, [1.0]))
