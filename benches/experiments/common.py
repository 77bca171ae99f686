"""What experiments have in common: options, real data, and pictures where matplotlib is installed."""

import argparse
import csv
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("QUINCUNX_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data")


def arguments(doc: str, *, quick: str | None = None, data: str | None = None) -> argparse.ArgumentParser:
    """Return the options that experiments share: a picture, a quick form if there is one, a folder if data are read."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help=quick)
    if data is not None:
        parser.add_argument("--data", type=Path, default=DATA, help=f"folder of the {data}")
    parser.add_argument("--picture", help="where the picture goes")
    return parser


def counted(source: Path, what: str) -> Any:
    """Return the columns of a packed table of whole numbers, or None where there is no such file, which is said."""
    if not source.is_file():
        print(f"{what} is skipped: there is no {source}\n")
        return None
    with gzip.open(source, "rt") as lines:
        return np.array([[int(x) for x in row] for row in csv.reader(lines) if row[0].isdigit()]).T


def plotting() -> Any:
    """Return matplotlib.pyplot, drawing into files alone, or None where it is not installed, which is said."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, target: str) -> None:
    """Write a picture and say where it is."""
    figure.savefig(target, dpi=120)
    print(f"picture: {target}")
