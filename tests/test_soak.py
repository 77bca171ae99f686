"""A short soak: mixed jobs in processes that are killed give right answers, and a wrong one is noticed."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parent.parent / "benches" / "soak.py"


@pytest.fixture
def soak():
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="memory and descriptors are read from /proc")
def test_jobs_survive_kills(soak, tmp_path):
    found = soak.soak(30.0, 2, 3.0, 14, tmp_path, enough=8)
    assert found["wrong"] == []
    assert found["died by themselves"] == 0
    assert found["jobs"] > 0
    assert found["kills"] > 0
    assert found["growth of memory"] < soak.GROWTH
    assert found["growth of descriptors"] <= soak.DESCRIPTORS


def test_figures_name_wrong_answers_and_spends_that_are_missing(soak, tmp_path):
    from quincunx.privacy import Budget

    Budget.open(tmp_path / "study.budget", 1.0)
    line = {"pid": 1, "round": 2, "job": "fit", "right": True, "why": "", "memory": 5 << 20, "descriptors": 4}
    lines = [
        line,
        line | {"right": False, "round": 3, "memory": 100 << 20, "descriptors": 30},
        line | {"job": "release"},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "diary-0").write_text(f'{text[:-40]}\n{text}\n{{"pid": 1, "rou')
    found = soak.figures(tmp_path, kills=0, died=0)
    assert "fit: another answer" in found["wrong"]
    assert any("0 spends for" in word for word in found["wrong"])
    assert found["largest memory"] == 100 << 20
