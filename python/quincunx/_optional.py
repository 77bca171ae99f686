"""Modules that are not required: imported where they are needed, with a message that names the extra."""

import importlib
import importlib.util
from types import ModuleType

from quincunx._types import Axes, SeveralAxes


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"this needs {package}: pip install 'quincunx[{extra}]'") from error


def installed(module: str) -> ModuleType | None:
    """Import an optional module where it is installed."""
    return importlib.import_module(module) if importlib.util.find_spec(module) is not None else None


def axes(ax: "Axes | None", *, current: bool = False) -> Axes:
    """Return the axes that were given, or else those of a new figure or the current ones."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", "plot")
        ax = pyplot.gca() if current else pyplot.subplots()[1]
    elif not isinstance(ax, require("matplotlib.axes", "plot").Axes):
        raise TypeError(f"`ax` must be a matplotlib axes, got {type(ax).__name__}")
    return ax


def several_axes(ax: SeveralAxes, number: int, words: str) -> list[Axes]:
    """Return the given axes as a list, of which there must be a number; `words` say it."""
    if isinstance(ax, (list, tuple)) or getattr(getattr(ax, "dtype", None), "hasobject", False):
        found = [one for part in ax for one in getattr(part, "flat", [part])]  # type: ignore[union-attr]
    else:
        found = [ax]
    if len(found) != number:
        raise ValueError(f"`ax` must {words}, got {len(found)}")
    for one in found:
        if not isinstance(one, require("matplotlib.axes", "plot").Axes):
            raise TypeError(f"`ax` must {words}, got {type(one).__name__}")
    return found
