"""The experiments of the papers run, print their tables, and draw their pictures where matplotlib is installed."""

from importlib.util import find_spec

import pytest

pytest.importorskip("sklearn")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("central_local", "one unit of one count is protected"),
        ("community_detection", "overdispersed"),
        pytest.param("posterior_recovery", "embedding, true components known", marks=pytest.mark.slow),
        pytest.param("topic_coherence", "private, variational", marks=pytest.mark.slow),
        pytest.param("topic_mcmc_vi", "variational, collapsed", marks=pytest.mark.slow),
    ],
)
def test_small_version_of_an_experiment_runs(name, said, experiment, tmp_path):
    picture = tmp_path / "picture.png"
    assert said in experiment(name, "--quick", "--picture", str(picture))
    assert picture.is_file() == (find_spec("matplotlib") is not None)
