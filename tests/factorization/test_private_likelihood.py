"""The script that puts the private likelihood into other samplers runs, with those of them that are installed."""

import re
from importlib.util import find_spec
from pathlib import Path

SCRIPT = Path(__file__).parent.parent.parent / "docs" / "gallery_src" / "counts" / "private_likelihood.py"


def test_the_example_finds_the_coefficients_back(output):
    said = output(None, SCRIPT, timeout=280)
    found = dict(re.findall(r"^(\w+) +\[(.*?)\]", said, flags=re.MULTILINE))
    assert found.keys() >= {"SciPy"} | ({"NumPyro"} if find_spec("numpyro") else set())
    for name, numbers in found.items():
        slope = float(numbers.split()[1])
        assert abs(slope - 0.8) < 0.2, name  # five standard errors
