"""The experiments of the paper run on data of their own and say what they should; real data where they are there."""

import importlib.util
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
FOLDER = Path(__file__).parents[2] / "benches" / "experiments"


@pytest.fixture(autouse=True)
def experiments_import_one_another(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


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


def test_private_shares_approach_the_ordinary_ones():
    theta = np.arange(1, 6) / 15
    rows = load("ldp_kosarak").run(theta, 1, [0.5, 4.0], clicks=2000, draws=150)
    assert [row[0] for row in rows] == [0.5, 4.0]
    assert rows[1][1].mean() < rows[0][1].mean()


@pytest.mark.parametrize("task", ["wine", "adult"])
def test_regressions_run_on_made_data(task):
    script = load("ldp_regression")
    ((_, found),) = script.run(task, script.made(task, rows=1500), 1, [8.0], few=200, draws=60)
    assert set(found) == {"moments", "LDP-SGD", "without noise", "constant"} | (
        {"inputs"} if task == "adult" else set()
    )
    best = found["without noise"][0]
    if task == "wine":
        assert 0 < best < 1.5
        assert all(best <= value[0] + 0.2 for value in found.values())
    else:
        assert best > 0.6
        assert all(0 <= value[0] <= 1 for value in found.values())
        assert found["constant"] == [0.5]


def test_learning_starts_where_a_method_stays_better_than_the_constant():
    starts = load("ldp_regression").learning_starts
    half = [0.5, 0.5, 0.5]

    def rows(*found):
        return [(2.0**i, {"a": values, "without noise": [0.9] * 3, "constant": half}) for i, values in enumerate(found)]

    assert starts(rows([0.6, 0.61, 0.6], [0.4, 0.5, 0.6], [0.7, 0.7, 0.8], [0.8, 0.8, 0.8]), True) == {"a": 4.0}
    assert starts(rows([0.4, 0.41, 0.4], [0.3, 0.3, 0.3]), False) == {"a": 1.0}
    assert starts(rows([0.4, 0.41, 0.4], [0.3, 0.3, 0.3]), True) == {"a": None}
    assert starts(rows([0.9], [0.9]), True) == {"a": None}  # one repeat has no standard error


def test_noise_of_records_and_labels_composes_exactly():
    script = load("ldp_regression")
    records, label = script.noise_of_inputs(2.0)
    both = label.guarantee & records.guarantee
    assert 0.999 * script.DELTA < both.delta_at(2.0) <= script.DELTA


@pytest.mark.parametrize("task", ["wine", "adult"])
def test_real_data_have_the_rows_of_their_descriptions(task):
    data = load("common").DATA
    if not data.exists():
        pytest.skip(f"no data in {data}")
    X, y, origin = load("ldp_regression").load(task, data)
    assert origin == task
    assert X.shape == ((6497, 11) if task == "wine" else (48842, 5 + 2 + 5 + 7 + 15))
    assert y.sum() == (37802 if task == "wine" else 7841 + 3846)


@pytest.mark.parametrize("package", ["numpy", "numpyro", "blackjax", "pymc"])
def test_other_samplers_take_the_density(package):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    script = load("ldp_other_samplers")
    model = script.posterior(500)
    u = script.SAMPLERS[package](model, 600)
    assert u.shape == (600, 2)
    for value, name in ((u[:, 0], "mu"), (np.exp(u[:, 1]), "sigma")):
        assert abs(value.mean() - model.posterior_mean_[name]) < model.posterior_sd_[name]
