"""The self-test passes on a machine that computes right, and notices one that does not."""

import json

import numpy as np
import pytest

from quincunx import cli, counting, distributions, lattices, privacy, selftest
from quincunx._optional import require


def findings(group, name=""):
    checks = [check for title, check in selftest.GROUPS[group]() if title.startswith(name)]
    assert checks
    return [check() for check in checks]


@pytest.mark.parametrize("group", ["known answers", "spare primes", "noise"])
def test_a_group_of_checks_passes(group):
    findings(group)


def test_samplers_fit():
    shown = findings("samplers")
    assert len(shown) >= 14
    assert all(word.startswith("p = ") for word in shown)


def test_all_vector_levels_and_threads_give_the_same_bits():
    assert len(set(findings("same bits"))) == 1


def test_faults_are_noticed(monkeypatch):
    monkeypatch.setattr(counting, "count_independent_sets", lambda *_, **__: 660647962956)
    with pytest.raises(selftest.Wrong, match="must be 660647962955"):
        findings("known answers", "square lattice")
    monkeypatch.undo()

    right = counting.count_independent_sets(lattices.square(12, 12))
    monkeypatch.setattr(counting, "combine_residues", lambda pairs: right)  # whatever the residues say
    with pytest.raises(selftest.Wrong, match="one wrong bit in residue 0"):
        findings("spare primes")
    monkeypatch.undo()

    draw = distributions.TwoSidedGeometric.sample
    biased = lambda law, *how, **more: draw(law, *how, **more) + (np.arange(200_000) % 5 == 0)  # noqa: E731
    monkeypatch.setattr(distributions.TwoSidedGeometric, "sample", biased)
    with pytest.raises(selftest.Wrong, match="probability"):
        findings("samplers", "two-sided geometric")
    monkeypatch.undo()

    one = privacy.privatize([0] * 64, epsilon=0.01)
    monkeypatch.setattr(privacy, "privatize", lambda *_, **__: one)
    with pytest.raises(selftest.Wrong):
        findings("noise", "no noise")


def test_the_command_prints_a_line_for_each_check_and_ends_with_1_where_one_is_wrong(monkeypatch, capsys):
    def good():
        return "p = 0.5"

    def bad():
        raise selftest.Wrong("must be 1, got 2")

    def broken():
        raise ZeroDivisionError("by zero")

    groups = {"a group": lambda: iter([("one", good), ("two", bad), ("three", broken)])}
    monkeypatch.setattr(selftest, "GROUPS", groups)
    assert cli.main(["selftest"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "WRONG", "WRONG", "3"]
    assert lines[-1] == "3 checks, 2 wrong"
    assert "ZeroDivisionError: by zero" in lines[2]
    assert cli.main(["selftest", "--json"]) == 1
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [fact["passed"] for fact in facts] == [True, False, False]
    monkeypatch.setattr(selftest, "GROUPS", {"a group": lambda: iter([("one", good)])})
    assert cli.main(["selftest"]) == 0


def test_checks_that_need_an_optional_package_are_left_out_where_it_is_missing(monkeypatch, capsys):
    def broken():
        raise ModuleNotFoundError("_core")

    needs = [("fit", lambda: require("no_such_package", "plot")), ("right", lambda: "")]
    monkeypatch.setattr(selftest, "GROUPS", {"known answers": lambda: needs})
    assert [finding.passed for finding in selftest.run()] == [None, True]
    assert cli.main(["selftest"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 checks, 0 wrong, 1 not made"
    needs.append(("core", broken))
    assert [finding.passed for finding in selftest.run()] == [None, True, False]
    assert cli.main(["selftest"]) == 1
