"""Figures and tables of the documents: the table has them all, quick forms run, the page of the docs is the table's."""

import dataclasses
import gzip
import importlib.util
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quincunx import counting

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("reproduce", ROOT / "benches" / "experiments" / "reproduce.py")
reproduce = importlib.util.module_from_spec(SPEC)
sys.modules["reproduce"] = reproduce  # dataclasses look their module up
SPEC.loader.exec_module(reproduce)

# Quick forms that take more than a second or two of a processor; one row of each kind runs always.
SLOW = {
    "schein-2019-figure-1",
    "schein-2018-figure-1",
    "schein-2018-section-5",
    "kulkarni-2021-figure-1",
    "kulkarni-2021-figure-2",
    "kulkarni-2021-figure-4",
    "kulkarni-2021-figure-5",
    "kulkarni-2021-figure-10",
    "kulkarni-2021-figure-11",
    "zhang-2017-figure-4.1",
    "zhang-2017-figure-4.2",
    "zhang-2017-figure-6.1",
    "zhang-2017-figure-6.2",
    "zhang-2017-figure-6.3",
    "zhang-2017-figure-8.4",
}
# Formulas and words, of which there is no picture.
PLAIN = {"kulkarni-2021-figure-7", "kulkarni-2021-figure-8"}
ROWS = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in reproduce.ROWS]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that makes the quick form of a row, and what its file has."""
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)

    def make(name, quick=True):
        into = tmp_path / "results"
        into.mkdir(exist_ok=True)
        result = reproduce.reproduce(name, into, form="quick" if quick else "full", data=tmp_path / "nothing")
        pyplot.close("all")
        assert {path.name for path in tmp_path.iterdir()} == {"results"}, "a picture fell beside the folder"
        assert json.loads((into / f"{name}.json").read_text()) == json.loads(json.dumps(result))
        assert all((into / picture).stat().st_size > 1000 for picture in result["pictures"])
        return result

    return make


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ROWS)
def test_the_quick_form_of_a_row_is_made(name, made):
    result = made(name)
    assert result["found"]
    assert result["pictures"] or "table" in name or "matrices" in name or name in PLAIN
    assert result["files that were not there"] == list(reproduce.ROWS[name].data)


def test_a_result_that_could_not_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    row = dataclasses.replace(reproduce.ROWS["zhang-2017-table-4.1"], make=lambda job: {})
    monkeypatch.setitem(reproduce.ROWS, "zhang-2017-x", row)
    reproduce.reproduce("zhang-2017-x", tmp_path, form="quick", data=tmp_path)
    before = (tmp_path / "zhang-2017-x.json").read_text()

    def half(path, text, write=Path.write_text):
        write(path, text[:20])
        raise OSError("full")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="full"):
        reproduce.reproduce("zhang-2017-x", tmp_path, form="quick", data=tmp_path)
    assert (tmp_path / "zhang-2017-x.json").read_text() == before


def test_the_table_has_the_figures_and_tables_of_all_five_documents():
    rows = reproduce.ROWS
    items = {key: [row.item for name, row in rows.items() if name.startswith(key)] for key in reproduce.DOCUMENTS}
    figures = {key: sum("figure" in item for item in found) for key, found in items.items()}
    assert figures == {"schein-2018": 1, "schein-2019": 2, "schofield-2018": 2, "kulkarni-2021": 11, "zhang-2017": 12}
    assert sum(item.startswith("table") for item in items["zhang-2017"]) == 6
    for name, row in rows.items():
        assert row.make or row.differs, name
        assert row.what, name
        assert set(row.data) <= {file for other in rows.values() for file in other.data}


def test_the_page_of_the_docs_is_printed_from_the_table():
    page = ROOT / "docs" / "reproduction.md"
    assert page.read_text() == reproduce.page(), "python benches/experiments/reproduce.py --page > docs/reproduction.md"


def test_every_row_that_draws_has_its_picture_on_the_page():
    pictures = {path.stem: path for path in reproduce.PICTURES.iterdir()}
    drawn = {name for name in reproduce.ROWS if "table" not in name and "matrices" not in name} - PLAIN
    assert set(pictures) == drawn
    sizes = {name: len(gzip.compress(path.read_bytes())) for name, path in pictures.items()}
    assert sum(sizes.values()) < 250_000, sizes
    for path in pictures.values():
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_small_picture_shows_what_the_large_one_shows(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure, ax = pyplot.subplots()
        ax.plot(range(20), [v**2 for v in range(20)], "o-", label="squares < cubes")
        ax.legend()
        figure.savefig(tmp_path / "a.svg")
        pyplot.close(figure)
    large = (tmp_path / "a.svg").read_text()
    reproduce.shrink(tmp_path / "a.svg", "a.py --only 'b & c'")
    small = (tmp_path / "a.svg").read_text()
    assert len(small) < 0.6 * len(large)
    before, after = (ElementTree.fromstring(text) for text in (large, small))
    assert after[0].text == "a.py --only 'b & c'"
    name = "{http://www.w3.org/2000/svg}"
    for tag in ("use", "text"):
        old, new = before.findall(f".//{name}{tag}"), after.findall(f".//{name}{tag}")
        assert [node.text for node in old] == [node.text for node in new]
        assert len(new) > 10
        for x in ("x", "y"):
            places = [(float(a.get(x, 0)), float(b.get(x, 0))) for a, b in zip(old, new, strict=True)]
            assert all(abs(a - b) < 0.051 for a, b in places)
    ids = {node.get("id") for node in after.iter()}
    assert set(re.findall(r"#(i\d+)", small)) <= ids


def test_what_is_printed_of_the_lattices_is_found(made):
    """Numbers printed in the thesis, against those that the rows find."""
    found = made("zhang-2017-figure-7.2")["found"]
    assert found["vertices of the printed set"] == sum(map(int, "".join(reproduce.COLUMNS_7_2.split())))
    table = counting.independent_set_table("4-8-8", 4, compare="thesis")
    assert found["independent sets"] == table.published[3, 4]
    matrices = made("zhang-2017-matrices-7.2")["found"]
    assert matrices["T_2"][0] == [27, 18, 18, 18, 12, 18, 18, 12, 12]
    assert matrices["B_2"][1] == [6, 3, 4, 4, 2, 4, 3, 3, 2]
    mean = made("zhang-2017-matrices-8.2")["found"]["mean"]
    assert sorted(map(sorted, mean)) == sorted(
        map(sorted, [[1, 1, 1, 1, 1], [1, 0, 0.3, 1, 0], [1, 0.7, 0, 0.3, 0.21], [1, 1, 0.7, 0, 0], [1, 0, 0.21, 0, 0]])
    )
    for table, compared, wrong in (("7.1", 57, 18), ("7.2", 58, 22), ("7.3", 62, 22)):
        result = made(f"zhang-2017-table-{table}", quick=False)["found"]
        assert (result["compared"], result["wrong"]) == (compared, wrong)
        assert f"{wrong} are wrong" in reproduce.ROWS[f"zhang-2017-table-{table}"].differs
        assert f"{compared} numbers" == reproduce.ROWS[f"zhang-2017-table-{table}"].printed
    for table, wrong in (("8.1", 3), ("8.2", 2)):
        result = made(f"zhang-2017-table-{table}", quick=False)["found"]
        assert (result["compared"], result["wrong"]) == (33, wrong)


def test_noise_has_the_deviation_of_the_mended_table(made):
    found = made("zhang-2017-table-4.1")["found"]
    drawn = found["drawn, 10 releases"]
    for mechanism, deviation in found["mended"].items():
        assert drawn[mechanism] == pytest.approx(deviation, rel=0.2)


def test_results_that_are_kept_are_of_full_forms_and_found_again(made):
    kept = [
        json.loads(line) for line in (ROOT / "benches" / "experiments" / "reproduced.jsonl").read_text().splitlines()
    ]
    names = [result["name"] for result in kept]
    assert names == [name for name in reproduce.ROWS if name in names]
    for result in kept:
        assert result["form"] == "full"
        assert result["commit"]
        if result["name"].startswith(("zhang-2017-table-7", "zhang-2017-table-8", "zhang-2017-matrices")):
            assert made(result["name"], quick=False)["found"] == result["found"]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *arguments])
    reproduce.main()


def test_the_command_lists_rows_and_asks_for_a_folder(monkeypatch, capsys, tmp_path):
    run(monkeypatch, "--list")
    assert len(capsys.readouterr().out.splitlines()) == len(reproduce.ROWS)
    run(monkeypatch, "--list", "zhang-2017-table-*")
    assert len(capsys.readouterr().out.splitlines()) == 6
    with pytest.raises(SystemExit, match=r"did you mean 'zhang-2017-table-7\.1'"):
        run(monkeypatch, "--list", "zang-2017-table-7.1")
    with pytest.raises(SystemExit):
        run(monkeypatch, "zhang-2017-table-7.1")
    assert "--into must name the folder" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    run(monkeypatch, "zhang-2017-figure-8.1", "--into", str(tmp_path / "a" / "b"))
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "zhang-2017-figure-8.1.json",
        "zhang-2017-figure-8.1.png",
    ]


@pytest.mark.parametrize(
    ("option", "where", "says"),
    [
        ("--into", "file", "must name a folder that is there or can be made: .*'file'"),
        ("--collect", "file", "must name a folder of results, got file"),
        ("--collect", "missing", "must name a folder of results, got missing"),
    ],
)
def test_what_is_no_folder_is_said(option, where, says, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, option, where)
    assert re.search(f"{option} {says}", capsys.readouterr().err)
    assert Path("file").read_text() == "kept"
