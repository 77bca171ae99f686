"""What benches keep: figures pass as JSON from a bench to the page of the docs, which has no figure of its own."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


measuring = module(ROOT / "benches" / "measuring.py")
RUNS = {run["bench"]: run for run in map(json.loads, (ROOT / "benches" / "measured.jsonl").read_text().splitlines())}


def test_a_bench_keeps_figures_only_where_it_is_asked(tmp_path, monkeypatch):
    measuring.keep("nobody asked", 1.0)
    monkeypatch.setenv(measuring.KEPT, str(tmp_path / "kept"))
    measuring.keep("a draw", 2e-9, {"NumPy": 1e-8})
    measuring.keep("a fit", 3.0)
    kept = [json.loads(line) for line in (tmp_path / "kept").read_text().splitlines()]
    assert kept == [
        {"what": "a draw", "ours": 2e-9, "peers": {"NumPy": 1e-8}},
        {"what": "a fit", "ours": 3.0, "peers": {}},
    ]


def test_a_run_is_kept_in_place_of_the_last_one(tmp_path, monkeypatch):
    (tmp_path / "bench_a.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'benches')!r})\n"
        "import measuring\nmeasuring.keep(sys.argv[1], 1.0)\n"
    )
    monkeypatch.setattr(measuring, "__file__", str(tmp_path / "measuring.py"))
    for word in ("first", "second"):
        monkeypatch.setattr(sys, "argv", ["measuring.py", "a", word, "--into", str(tmp_path / "measured.jsonl")])
        measuring.main()
    (run,) = map(json.loads, (tmp_path / "measured.jsonl").read_text().splitlines())
    assert run["arguments"] == ["second"]
    assert run["figures"] == [{"what": "second", "ours": 1.0, "peers": {}}]
    assert run["additions"] > 1e6


def test_every_bench_has_a_table_on_the_page():
    page = (ROOT / "docs" / "how-fast.md").read_text()
    tables = set(re.findall(r"^```\{measured\} (\w+)", page, flags=re.MULTILINE))
    assert tables == {path.stem.removeprefix("bench_") for path in (ROOT / "benches").glob("bench_*.py")}
    assert set(RUNS) <= tables  # of one that is missing the page says that it has not been measured
    for run in RUNS.values():
        assert run["commit"]
        assert run["figures"]
        assert all(figure["ours"] > 0 for figure in run["figures"])


def test_a_table_says_how_many_times_our_time_a_peer_takes():
    pytest.importorskip("sphinx")
    tables = module(ROOT / "docs" / "_extensions" / "measured_tables.py")
    figures = [
        {"what": "a count", "ours": 2e-3, "peers": {"oxidd": 5.0}},
        {"what": "a count", "ours": 2.1e-3, "peers": {"numpy": 1.1e-3}},
        {"what": "a draw", "ours": 3e-9, "peers": {}},
    ]
    run = RUNS["entropy"] | {"figures": figures, "load": [9.0, 3.0], "cores": 2}
    lines = tables.table(run, []).splitlines()
    assert lines[2] == "| a count | 2.0 ms | oxidd 2 500, numpy 0.55 |"
    assert lines[3] == "| a draw | 3.0 ns |  |"
    assert "the machine was busy" in lines[-1]
    assert "a count" not in tables.table(run, ["draw"])
    with pytest.raises(ValueError, match="kept nothing"):
        tables.table(run, ["fit"])
