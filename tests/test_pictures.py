"""The pictures of the README and of the first page are what the package draws today."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.filterwarnings("ignore::quincunx.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["lattice.svg", "noise.svg", "posterior.svg"])
def test_a_picture_is_drawn_again_to_the_letter(name):
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    drawn = pictures.PICTURES[name]()
    assert drawn == (DOCS / "_static" / name).read_text(), "run `python docs/pictures.py`"
