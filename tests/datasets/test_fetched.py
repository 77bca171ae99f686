"""Public data: the tables have the sizes that their papers and readers tell, and other bytes are refused."""

import functools
import gzip
import hashlib
import http.server
import os
import sys
import threading
import types
from pathlib import Path

import pytest

from quincunx import datasets
from quincunx.datasets import _files

pytest.importorskip("pandas")

COPIES = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def copies(monkeypatch):
    """Return a function that reads by the copies at hand, or skips the test."""
    where = datasets.folder() if "QUINCUNX_DATA" in os.environ else COPIES

    def read(function, *arguments):
        monkeypatch.setenv("QUINCUNX_DATA", str(where))
        monkeypatch.setitem(sys.modules, "pooch", None)  # nothing is fetched in a test
        try:
            return function(*arguments)
        except ImportError:
            pytest.skip(f"the files of {function.__name__} are not in {where}, the folder of QUINCUNX_DATA")

    return read


def test_mails_have_the_numbers_of_the_corpus(copies):
    mails, people = found = copies(datasets.fetch_enron)
    assert list(mails.columns) == ["sender", "receiver", "messages"]
    assert (len(mails), int(mails.messages.sum()), int(mails.messages.max())) == (2715, 38388, 1168)
    assert not (mails.sender == mails.receiver).any()
    assert list(people.index) == list(range(1, 157))
    assert set(people.department) == {"Legal", "Trading", "Other"}
    assert set(people.seniority) == {"Junior", "Senior"}
    assert not people.isna().any().any()
    table = found.matrix()
    assert table.shape == (156, 156)
    assert int(table.to_numpy().sum()) == 38388
    assert table.loc[1, 10] == mails.set_index(["sender", "receiver"]).messages[1, 10] == 2


def test_sessions_have_the_numbers_of_their_selection(copies):
    clicks = copies(datasets.fetch_kosarak)
    assert (len(clicks), clicks.session.nunique(), clicks.page.nunique()) == (1240384, 505217, 2605)
    assert clicks.groupby("session").size().max() == 5
    assert not clicks.duplicated().any()
    seen = clicks.page.value_counts()
    assert seen.head(2).to_dict() == {6: 254682, 3: 227315}


def test_census_records_have_the_numbers_of_their_documentation(copies):
    train, test, both = (copies(datasets.fetch_adult, subset) for subset in ("train", "test", "all"))
    assert (len(train), len(test), len(both)) == (32561, 16281, 48842)
    # adult.names: 76.07 % have at most 50K; 45222 records without unknown values, 30162 of them for training.
    assert round(100 * float((both.income == "<=50K").mean()), 2) == 76.07
    known = ~(both == "?").any(axis=1)
    assert (int(known.sum()), int(known[:32561].sum())) == (45222, 30162)
    assert both.income.nunique() == 2
    assert (both.education.nunique(), both.years.nunique()) == (16, 16)
    assert both.age.between(17, 90).all()


def test_wines_have_the_numbers_of_their_documentation(copies):
    wines, red, white = (copies(datasets.fetch_wine, color) for color in ("all", "red", "white"))
    assert (len(red), len(white), len(wines)) == (1599, 4898, 6497)
    # Cortez et al., figure 1 and table 1: qualities 3 to 9, of red wines to 8; alcohol 8.4 to 14.9 and 8.0 to 14.2.
    assert (red.quality.min(), red.quality.max(), white.quality.min(), white.quality.max()) == (3, 8, 3, 9)
    assert (red.alcohol.min(), red.alcohol.max(), white.alcohol.min(), white.alcohol.max()) == (8.4, 14.9, 8.0, 14.2)
    assert all(kind.kind in "if" for kind in wines.dtypes)


def test_content_is_checked_whoever_put_it_there(monkeypatch, tmp_path):
    monkeypatch.setenv("QUINCUNX_DATA", str(tmp_path))
    (tmp_path / "winequality-red.csv").write_text("7.4,0.7\n")
    with pytest.raises(ValueError, match=r"winequality-red\.csv: the SHA-256 of its content must be c96145"):
        datasets.fetch_wine("red")


def test_without_a_network_the_message_says_where_to_put_what(monkeypatch, tmp_path):
    def retrieve(url, *arguments, **options):
        raise ConnectionError(url)

    monkeypatch.setenv("QUINCUNX_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", types.SimpleNamespace(retrieve=retrieve))
    with pytest.raises(OSError, match=r"put kosarak-5-25\.txt or kosarak_5_25\.txt\.gz into .* QUINCUNX_DATA"):
        datasets.fetch_kosarak()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'quincunx\[datasets\]'"):
        datasets.fetch_kosarak()
    monkeypatch.delenv("QUINCUNX_DATA")
    with pytest.raises(ImportError, match=r"pip install 'quincunx\[datasets\]'"):
        datasets.folder()


def test_a_file_is_fetched_once_and_what_is_not_it_never(monkeypatch, tmp_path):
    pytest.importorskip("pooch")
    home, here, asked = tmp_path / "home", tmp_path / "here", []
    home.mkdir()
    (home / "pages.txt").write_bytes(b"1 2\n3\n")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            asked.append(words)

    with http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=home)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        digest = hashlib.sha256(b"1 2\n3\n").hexdigest()
        monkeypatch.setenv("QUINCUNX_DATA", str(here))
        monkeypatch.setattr(_files, "_KOSARAK", [_files._File("pages.txt", digest, url)])
        for _ in range(2):
            assert datasets.fetch_kosarak().to_dict("list") == {"session": [0, 0, 1], "page": [1, 2, 3]}
        assert len(asked) == 1
        monkeypatch.setattr(_files, "_KOSARAK", [_files._File("other.txt", digest, url)])
        with pytest.raises(OSError, match=r"other\.txt could not be fetched \(HTTPError\)"):
            datasets.fetch_kosarak()
        (home / "other.txt").write_bytes(b"1 2\n4\n")
        with pytest.raises(ValueError, match="hash"):
            datasets.fetch_kosarak()
        assert not (here / "other.txt").exists()
        server.shutdown()


def test_copies_are_unpacked_before_they_are_checked(monkeypatch, tmp_path):
    monkeypatch.setenv("QUINCUNX_DATA", str(tmp_path))
    (tmp_path / "pages.txt.gz").write_bytes(gzip.compress(b"5 6\n"))
    file = _files._File("pages.txt.gz", hashlib.sha256(b"5 6\n").hexdigest())
    monkeypatch.setattr(_files, "_KOSARAK", [_files._File("pages.txt", "", "nowhere"), file])
    assert datasets.fetch_kosarak().page.tolist() == [5, 6]


def test_a_home_folder_is_one_name_for_reading_and_fetching(monkeypatch):
    """Pooch takes `~` for it."""
    monkeypatch.setenv("QUINCUNX_DATA", "~/data")
    assert datasets.folder() == Path.home() / "data"
