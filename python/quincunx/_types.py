"""Types that several rooms name: arrays, objects of JSON, and objects of packages that are not required."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import distributed
    import matplotlib.axes
    import networkx
    import pandas
    import sklearn.utils
    import xarray

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
#: An array of numbers or labels of any kind.
Array: TypeAlias = npt.NDArray[Any]
V = TypeVar("V")
#: Values by the labels of a user, of whatever type: a Mapping is invariant in that of its keys.
ByLabel: TypeAlias = Mapping[Any, V]
#: What NumPy takes between brackets.
Index: TypeAlias = Any
#: What JSON holds, as Python has it.
Json: TypeAlias = Any
#: Values by name: settings, arguments, evidence of proofs, what JSON holds.
Facts: TypeAlias = dict[str, Any]

# What follows is imported by type checkers alone, so that annotations which add to it stand in quotes.
Client: TypeAlias = "distributed.Client"
Axes: TypeAlias = "matplotlib.axes.Axes"
SeveralAxes: TypeAlias = "Axes | Sequence[Axes]"
DataFrame: TypeAlias = "pandas.DataFrame"
DataTree: TypeAlias = "xarray.DataTree"
NetworkX: TypeAlias = "networkx.Graph"
Tags: TypeAlias = "sklearn.utils.Tags"
#: Columns by name, or a table whose columns have no names.
Frame: TypeAlias = "DataFrame | Mapping[Hashable, npt.ArrayLike] | npt.ArrayLike"
