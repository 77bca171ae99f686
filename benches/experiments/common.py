"""What experiments have in common: options, the folder of real data, and pictures where matplotlib is installed."""

import argparse
import os
from pathlib import Path
from typing import Any

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
