"""Tables of exact counts: all entries up to 10 x 10, and what of the published tables is wrong."""

import json
import pickle
from pathlib import Path

import pytest
from counting_oracle import frontier_sums

from quincunx import lattices
from quincunx.counting import IndependentSetTable, count_independent_sets, independent_set_table

BOUNDARIES = ["free", "cylinder", "torus"]
EXACT = Path(__file__).parents[3] / "shared" / "data" / "exact_488_tables.json"


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_all_hundred_entries_of_a_4_8_8_table_are_exact(boundary):
    if not EXACT.exists():
        pytest.skip(f"the exact tables are not at {EXACT}")
    rows = json.loads(EXACT.read_text())[boundary]
    expected = {(int(m), int(n)): int(count) for m, row in rows.items() for n, count in row.items()}
    assert len(expected) == 100
    assert independent_set_table("4-8-8", 10, boundary=boundary).values == expected


def test_entries_that_need_no_file():
    tables = {boundary: independent_set_table("4-8-8", 6, boundary=boundary) for boundary in BOUNDARIES}
    for boundary, m, n, count in [
        ("free", 1, 1, 47),
        ("free", 3, 1, 12887),
        ("free", 3, 2, 7144259),
        ("free", 5, 5, 400989410760263909570575),
        ("free", 6, 6, 775674397726884512656078556955489),
        ("cylinder", 1, 1, 15),
        ("cylinder", 2, 3, 872817),
        ("cylinder", 3, 2, 308007),
        ("cylinder", 3, 5, 50808099454115),
        ("cylinder", 5, 4, 112585183506896767),
        ("torus", 1, 1, 5),
        ("torus", 2, 3, 37235),
        ("torus", 5, 5, 10491381016588919025),
        ("torus", 6, 6, 2454789445716741504217902815),
    ]:
        assert tables[boundary][m, n] == count


@pytest.mark.parametrize(("boundary", "wrong", "printed"), [("free", 18, 57), ("cylinder", 22, 58), ("torus", 22, 62)])
def test_the_published_tables_have_so_many_wrong_entries(known, boundary, wrong, printed):
    errata = known("independent_sets")["thesis"][boundary]
    assert (errata["wrong"], errata["printed"]) == (wrong, printed)
    table = independent_set_table("4-8-8", 9, boundary=boundary, compare="thesis")
    assert (len(table.wrong), len(table.published)) == (wrong, printed)
    corrected = {tuple(entry["extent"]): int(entry["count"]) for entry in errata["corrected"]}
    assert table.wrong.keys() == corrected.keys()
    for place, count in corrected.items():
        assert table[place] == count != table.published[place]
        # All but a lost and two inserted digits are rounding: a relative error below 4e-11.
        lost_or_inserted = (boundary, *place) in {("cylinder", 5, 4), ("cylinder", 9, 3), ("cylinder", 3, 5)}
        assert (abs(table.published[place] - count) > count * 4e-11) is lost_or_inserted


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_corrections_are_confirmed_by_the_plain_graph(known, boundary):
    for entry in known("independent_sets")["thesis"][boundary]["corrected"]:
        lattice = lattices.four_eight_eight(*entry["extent"], boundary)
        assert count_independent_sets(lattice.graph) == count_independent_sets(lattice) == int(entry["count"])


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_corrections_are_confirmed_by_sums_in_python_integers(known, boundary):
    for entry in known("independent_sets")["thesis"][boundary]["corrected"]:
        m, n = entry["extent"]
        # The sums want the shorter side across; a cylinder is not the same from the side.
        lattice = lattices.four_eight_eight(*((m, n) if boundary == "cylinder" else (max(m, n), min(m, n))), boundary)
        assert frontier_sums(lattice.num_vertices, lattice.edges.tolist()) == int(entry["count"])


def test_right_entries_are_not_marked():
    table = independent_set_table("4-8-8", 3, compare="thesis")
    assert table.wrong == {}
    assert len(table.published) == 9
    assert str(table).endswith("0 of 9 published entries are wrong")


def test_a_table_prints_every_entry_and_marks_the_wrong_ones():
    table = independent_set_table("4-8-8", 5, compare="thesis")
    lines = str(table).splitlines()
    assert lines[0] == "4-8-8, free"
    assert len(lines) == 1 + 25 + 1
    assert "  1   1  47" in lines
    marked = [line for line in lines if "wrong)" in line]
    assert marked == [
        "  4   5  21891571255589181059  (published: 21891571255589181023, wrong)",
        "  5   5  400989410760263909570575  (published: 400989410760263959456896, wrong)",
    ]
    assert lines[-1] == "2 of 25 published entries are wrong"


def test_a_table_is_ready_for_json_in_strings_of_digits():
    table = independent_set_table("4-8-8", 5, boundary="free", compare="thesis")
    content = json.loads(json.dumps(table.to_dict()))
    assert (content["lattice"], content["boundary"], content["size"]) == ("4-8-8", "free", 5)
    assert content["values"]["5,5"] == "400989410760263909570575"
    assert content["wrong"]["4,5"] == "21891571255589181023"
    assert len(content["values"]) == 25
    assert "wrong" not in independent_set_table("square", 2).to_dict()


@pytest.mark.parametrize("kind", ["square", "king", "triangular", "honeycomb"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_other_lattices_have_tables_too(kind, boundary):
    table = independent_set_table(kind, 4, boundary=boundary)
    assert len(table.values) == 16
    for (m, n), count in table.values.items():
        lattice = lattices.named(kind, m, n, boundary, multigraph=True)
        assert frontier_sums(lattice.num_vertices, lattice.edges.tolist()) == count, (m, n)


def test_the_table_of_the_square_torus_is_the_published_sequence():
    table = independent_set_table("square", 6, boundary="torus")
    assert [table[n, n] for n in range(1, 7)] == [1, 7, 34, 743, 25531, 2406862]


def test_a_table_pickles_and_keeps_its_numbers():
    table = independent_set_table("4-8-8", 4, boundary="torus", compare="thesis")
    copy = pickle.loads(pickle.dumps(table))
    assert isinstance(copy, IndependentSetTable)
    assert copy == table
    assert "12887" not in repr(table)


def test_progress_counts_the_entries():
    heard = []
    independent_set_table("4-8-8", 3, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 9) for done in range(1, 10)]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"lattice": "cubic"}, ValueError, "`name` must be one of"),
        ({"lattice": 7}, TypeError, "`name` must be a str"),
        ({"size": 0}, ValueError, "`size` must be between 1 and 1000, got 0"),
        ({"size": 2.5}, TypeError, "`size` must be a whole number"),
        ({"size": 2, "boundary": "open"}, ValueError, "`boundary` must be one of"),
        ({"size": 2, "boundary": None}, TypeError, "`boundary`"),
        ({"size": 2, "compare": "paper"}, ValueError, "`compare` must be one of"),
        (
            {"lattice": "square", "size": 2, "compare": "thesis"},
            ValueError,
            "`compare` must be None for a lattice other",
        ),
        ({"size": 2, "threads": 0}, ValueError, "`threads`"),
        ({"size": 2, "memory_limit": 0}, ValueError, "`memory_limit`"),
        ({"size": 2, "progress": 1}, TypeError, "`progress`"),
    ],
)
def test_bad_input_is_named_with_its_rule(arguments, error, says):
    with pytest.raises(error, match=says):
        independent_set_table(**arguments)


def test_a_table_is_a_data_frame_of_exact_ints():
    table = independent_set_table("4-8-8", 6)
    frame = table.to_pandas()
    assert frame.shape == (6, 6)
    assert (frame.index.name, frame.columns.name) == ("m", "n")
    assert all(type(value) is int and value == table[m, n] for (m, n), value in frame.stack().items())


def test_a_table_shows_itself_as_a_grid():
    table = independent_set_table("square", 3, boundary="free")
    lines = repr(table).splitlines()
    assert lines[0] == "IndependentSetTable('square', 3, boundary='free')"
    assert [line.split() for line in lines[2:]] == [["1", "2", "3", "5"], ["2", "3", "7", "17"], ["3", "5", "17", "63"]]
    compared = independent_set_table("4-8-8", 5, compare="thesis")
    assert compared.grid().count("*") == compared._repr_html_().count("*") == 2
    assert "<th>5</th>" in compared._repr_html_()
    wide = independent_set_table("4-8-8", 6).grid().splitlines()
    assert len({len(line) for line in wide}) == 1
    assert "e" in wide[-1]
