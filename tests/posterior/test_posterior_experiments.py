"""The experiments of the thesis run, print their tables, and draw their pictures where matplotlib is installed."""

from importlib.util import find_spec

import pytest

pytest.importorskip("sklearn")


@pytest.mark.parametrize(
    ("name", "said"),
    [("posterior_regression", "census"), ("posterior_naive_bayes", "what the thesis sampler really spends")],
)
def test_small_version_of_an_experiment_runs(name, said, experiment, tmp_path):
    picture = tmp_path / "picture.png"
    assert said in experiment(name, "--quick", "--picture", str(picture))
    assert picture.is_file() == (find_spec("matplotlib") is not None)


def test_synthetic_records_are_nearer_than_independent_columns_in_the_experiment(experiment):
    rows = [line.split() for line in experiment("posterior_synthetic", "--quick").splitlines()[2:]]
    errors = {(" ".join(row[:-5]), row[-5]): [float(value) for value in row[-3:]] for row in rows}
    assert len(rows) == 7
    assert errors["1", "rounds"][1] < 0.05 > errors["1", "tree"][1]
    assert errors["1", "none"][1] > 0.3
