"""Tables as users have them: labelled ones of pandas and xarray, sparse ones of SciPy, networks of networkx.

None of these libraries is imported: an object of one of them says so itself, since its library has been loaded.
"""

import datetime
import reprlib
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import EllipsisType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Array, Facts, Index, Json
from quincunx.errors import TooLargeError

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse
    import xarray


class Axis(NamedTuple):
    """What an axis of an array is called, and what lies along it; None where it was not said.

    `declared`: the labels were chosen without the data, so that they tell nothing of them.
    """

    name: Hashable = None
    labels: tuple[Hashable, ...] | None = None
    declared: bool = False


Axes = tuple[Axis, ...]

#: Types of what has no labels.
_PLAIN = frozenset((np.ndarray, list, tuple, int, float))


def of_library(value: object, module: str, *names: str) -> bool:
    """Say whether a value is of a class of a library, which then has been loaded."""
    library = sys.modules.get(module)
    return library is not None and any(isinstance(value, getattr(library, name, ())) for name in names)


def is_network(value: object) -> "TypeGuard[networkx.Graph]":
    """Say whether a value is a graph of networkx."""
    return of_library(value, "networkx", "Graph")


def is_sparse(value: object) -> "TypeGuard[scipy.sparse.sparray]":
    """Say whether a value is a sparse array of SciPy."""
    return of_library(value, "scipy.sparse", "sparray", "spmatrix")


def axes(value: object) -> Axes:
    """Return the axes of a labelled table; none where a value has no labels."""
    if type(value) in _PLAIN:
        return ()
    if isinstance(own := getattr(value, "axes_", None), tuple) and all(isinstance(axis, Axis) for axis in own):
        return own
    if of_library(value, "pandas", "DataFrame", "Series"):
        return _known(tuple(_axis_of_index(index) for index in value.axes))  # type: ignore[attr-defined]
    if of_library(value, "xarray", "DataArray"):
        return _known(tuple(_axis_of_dim(value, dim) for dim in value.dims))  # type: ignore[arg-type, attr-defined]
    if is_arrow(value) or of_library(value, "dask.dataframe", "DataFrame"):  # which have no names of rows at hand
        names = getattr(value, "column_names", None) or value.columns  # type: ignore[attr-defined]
        return (Axis(), Axis(None, tuple(names)))
    if is_network(value):
        nodes = tuple(value)
        return (Axis(None, nodes), Axis(None, nodes))
    return ()


def axes_broadcast(value: object) -> Axes:
    """Return the axes of an array that may be broadcast: along one of extent 1, which is for all, there is no label."""
    # A shape that is there already: no range of 10**12 is made an array. Extents of dask may be unknown.
    alone = [isinstance(extent, int) and extent == 1 for extent in getattr(value, "shape", ())]
    return tuple(Axis() if one else axis for axis, one in zip(axes(value), alone, strict=False))


def is_arrow(value: object) -> bool:
    """Say whether a value is a table of polars or pyarrow."""
    return of_library(value, "polars", "DataFrame") or of_library(value, "pyarrow", "Table", "RecordBatch")


def _known(found: Axes) -> Axes:
    """Return axes, or none where all are without name and labels."""
    return found if any(axis != Axis() for axis in found) else ()


def _axis_of_index(index: "pandas.Index") -> Axis:
    name = index.name if index.nlevels == 1 else (tuple(index.names) if any(index.names) else None)
    numbered = of_library(index, "pandas", "RangeIndex") and (index.start, index.step) == (0, 1)
    return Axis(name, None if numbered else tuple(index.tolist()))


def _axis_of_dim(array: "xarray.DataArray", dim: Hashable) -> Axis:
    if dim not in array.coords:
        return Axis(dim, None)
    values = array.coords[dim].values
    return Axis(dim, tuple(values.astype("datetime64[us]").tolist() if values.dtype.kind == "M" else values.tolist()))


def fitting(found: Axes, shape: Sequence[int]) -> Axes:
    """Return axes for an array of a shape: its first ones, the others unnamed; none if one does not fit."""
    found = found[: len(shape)]
    for axis, extent in zip(found, shape, strict=False):
        if axis.labels is not None and len(axis.labels) != extent:
            return ()
    return found + (Axis(),) * (len(shape) - len(found)) if found else ()


def picked(found: Axes, index: Index, shape: Sequence[int]) -> Axes:
    """Return the axes of ``array[index]``, of an array of a shape with these axes, where NumPy takes the index.

    Axes that arrays of indices make jointly have neither names nor labels, unless these are those of `numpy.ix_`.
    """
    parts: list[slice | EllipsisType | npt.NDArray[np.intp] | None] = []
    for part in index if isinstance(index, tuple) else (index,):
        if part is None or part is Ellipsis or isinstance(part, slice):
            parts.append(part)
        elif (places := np.asarray(part)).dtype != np.bool_:
            parts.append(places.astype(np.intp))  # an empty list is no array of integers yet
        elif places.ndim:
            if all(own is not Ellipsis for own in parts):  # behind one it is not known yet of which axes
                at = sum(own is not None for own in parts)
                refuse_other_labels(axes(part), found[at : at + places.ndim], "index", "the release")
            parts.extend(places.nonzero())
        else:
            return ()  # a bare True or False adds an axis and picks from none
    if all(part is not Ellipsis for part in parts):
        parts.append(Ellipsis)
    at = next(i for i, part in enumerate(parts) if part is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - sum(part is not None for part in parts) + 1)

    rest, result, arrays, block = iter(found), list[Axis](), list[tuple[Axis, npt.NDArray[np.intp]]](), list[int]()
    before = 0  # how many axes come before those of the arrays, if nothing stands between these
    joint = any(isinstance(part, np.ndarray) and part.ndim for part in parts)
    for place, part in enumerate(parts):
        axis = Axis() if part is None else next(rest)
        if isinstance(part, slice):
            axis = axis._replace(labels=None if axis.labels is None else axis.labels[part])
        if part is None or isinstance(part, slice):
            result.append(axis)
        elif joint and isinstance(part, np.ndarray):  # numbers beside arrays of indices are arrays, too
            before = before if block else len(result)
            block.append(place)
            arrays += [(axis, part)] if part.ndim else []
    if arrays:
        before = before if block[-1] - block[0] == len(block) - 1 else 0
        result[before:before] = _of_arrays(arrays)
    return _known(tuple(result))


def _of_arrays(arrays: list[tuple[Axis, npt.NDArray[np.intp]]]) -> list[Axis]:
    """Return the axes that arrays of indices make: each its own, where the i-th array varies along the i-th alone."""
    extents = np.broadcast_shapes(*(part.shape for _, part in arrays))
    if len(arrays) != len(extents) or any(
        part.ndim != len(extents) or part.shape[i] != part.size for i, (_, part) in enumerate(arrays)
    ):
        return [Axis()] * len(extents)
    return [
        axis._replace(labels=None if axis.labels is None else tuple(axis.labels[i] for i in part.reshape(-1).tolist()))
        for axis, part in arrays
    ]


def refuse_other_labels(own: Axes, axes: Axes, name: str, of: str = "`released`", first: int = 0) -> None:
    """Refuse axes whose labels, from the first that matters on, are not those of others: cells go by their position.

    Axes of the same names in another order are refused, too, and numbers in another order than those of no labels.
    """
    if own and axes and len(own) != len(axes):  # which of them, an array that is broadcast does not say
        raise ValueError(f"`{name}` must have the {len(axes)} axes of {of} where both have labels, got {len(own)}")
    names, others = ([axis.name for axis in some] for some in (own, axes))
    if names != others and None not in names and set(names) == set(others):
        raise ValueError(f"`{name}` must have the axes of {of}, in their order: they are {names}, not {others}")
    for place, (axis, other) in enumerate(zip(own, axes, strict=False)):
        told = other.labels if axis.labels is None else axis.labels
        if place < first or told is None:
            continue
        mine, theirs = (tuple(range(len(told))) if one.labels is None else one.labels for one in (axis, other))
        if None in (axis.labels, other.labels) and set(mine) != set(theirs):
            continue  # labels beside none
        if mine != theirs and reread(mine) != reread(theirs):
            raise ValueError(
                f"`{name}` must have the labels of {of}, in their order: axis {place} has "
                f"{reprlib.repr(mine)}, not {reprlib.repr(theirs)}"
            )


def refuse_other_order(
    labels: Sequence[Hashable],
    own: Sequence[Hashable],
    rule: str,
    read: Callable[[Hashable], Hashable] = lambda label: label,
) -> None:
    """Refuse labels that are one's own in another order, for they go by position: those read alike are the same."""
    pairs = enumerate(zip(labels, own, strict=False))
    first = next((place for place, pair in pairs if read(pair[0]) != read(pair[1])), None)
    if first is not None and {*map(read, labels)} == {*map(read, own)}:
        raise ValueError(f"{rule}, got {labels[first]!r} for {own[first]!r} at index {first}")


def on_domain(value: object, found: Axes, domain: object, name: str, called: str = "`domain`") -> tuple[Array, Axes]:
    """Return a labelled array on the labels that were declared, and its axes; cells that it does not have are zero.

    `domain` has the labels of each axis, None for one that stays as it is; of an array with one axis or a network they
    are given as they are. A label that is not among them is refused.
    """
    _check.fits(value, name)
    values = np.asarray(array(value, name))
    known = fitting(found, values.shape)
    if not known:
        raise ValueError(f"{called} must be left out where `{name}` has no labels")
    wanted = [domain] * values.ndim if values.ndim == 1 or is_network(value) else domain
    if not isinstance(wanted, (list, tuple)) or len(wanted) != values.ndim:
        raise ValueError(f"{called} must have labels or None for each of the {values.ndim} axes of `{name}`")
    axes, places = [], []
    for number, (axis, labels) in enumerate(zip(known, wanted, strict=True)):
        if labels is None:
            axes.append(axis)
            places.append(list(range(values.shape[number])))
            continue
        place = f"axis {number}" + ("" if axis.name is None else f" ({axis.name})")
        places_of = _places(labels, f"{called} of {place}")
        own = range(values.shape[number]) if axis.labels is None else axis.labels
        if len(set(own)) < len(own):
            raise ValueError(f"`{name}` must have each label of {place} once beside {called}")
        if others := [label for label in own if label not in places_of]:
            raise ValueError(f"{called} must hold every label of `{name}`, got {others[0]!r} in {place}")
        axes.append(Axis(axis.name, tuple(places_of), True))
        places.append([places_of[label] for label in own])
    shape = [
        extent if axis.labels is None else len(axis.labels) for axis, extent in zip(axes, values.shape, strict=True)
    ]
    refuse_large(shape, name)
    dense = np.zeros(shape, dtype=values.dtype)
    dense[np.ix_(*places)] = values
    return np.triu(dense) if is_network(value) and not value.is_directed() else dense, tuple(axes)


def _places(labels: Iterable[Hashable], name: str) -> dict[Hashable, int]:
    """Return where each declared label stands."""
    _check.fits(labels, name)
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of labels, got {labels!r}")
    try:
        given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
        places = {label: place for place, label in enumerate(given)}
    except TypeError as reason:
        raise TypeError(f"{name} must be a sequence of labels: {reason}") from reason
    if len(places) < len(given) or not given or any(label != label for label in given):
        raise ValueError(
            f"{name} must hold labels, each once and none missing, got {len(given)} of which {len(places)} differ"
        )
    return places


def summed(value: Any, name: str) -> Any:
    """Return a sparse array with one entry for each place, where several stood their sum, of integers in 64 bits."""
    if getattr(value, "has_canonical_format", True):
        return value
    entries = value.tocoo(copy=True)
    whole = entries.dtype.kind in "iu"
    if whole and entries.dtype.itemsize < 8:
        entries = entries.astype(np.int64)
    rounded = entries.astype(np.float64) if whole else entries
    for one in (entries, rounded):
        one.sum_duplicates()
    # A sum that began anew is off by 2^64 or more, the rounding of a few million numbers by far less.
    if whole and (wrong := np.abs(entries.data.astype(np.float64) - rounded.data) > 2.0**62).any():
        got = rounded.data[wrong][0]
        raise ValueError(f"`{name}` must have a sum within 64 bits of the entries at each place, got {got:g}")
    return entries


def array(value: Any, name: str, *, triangle: bool = False) -> Any:
    """Return a table of any kind as an array, and whatever else as it is.

    A sparse array is made dense, where memory has room for it. A network becomes its matrix of weights, the parallel
    edges of a multigraph added; with `triangle` an undirected one only above its diagonal.
    """
    if type(value) in _PLAIN:
        return value
    if is_sparse(value):
        refuse_large(value.shape, name)
        return summed(value, name).toarray()
    if is_network(value):
        import networkx

        refuse_large((len(value), len(value)), name)
        weights: Array = networkx.to_numpy_array(value, nonedge=0.0)
        if (np.abs(weights) >= 2**53).any():
            weights = _check.unrounded(networkx.to_numpy_array(value, dtype=object, nonedge=0).tolist(), name)
        elif (weights == np.floor(weights)).all():
            weights = weights.astype(np.int64)
        return np.triu(weights) if triangle and not value.is_directed() else weights
    return _plain(value, name) if of_library(value, "pandas", "DataFrame", "Series") else value


def _plain(value: "pandas.DataFrame", name: str) -> "pandas.DataFrame | Array":
    """Return a table of pandas as NumPy has it; of the kinds of numbers that know of missing ones it makes objects."""
    found = np.asarray(value)
    kinds = {getattr(kind, "kind", "O") for kind in np.atleast_1d(np.asarray(value.dtypes, dtype=object))}
    if found.dtype != object or not kinds <= set("biuf"):
        return value
    if "f" in kinds or value.isna().to_numpy().any():
        rounded = value.to_numpy(dtype=np.float64, na_value=np.nan)
        _check.refuse_rounded(found, rounded, name)
        return rounded
    return value.to_numpy(dtype=np.bool_ if kinds == {"b"} else np.int64)


# Long tables: a line for each cell.


def is_frame(value: object) -> "TypeGuard[pandas.DataFrame]":
    """Say whether a value is a DataFrame of pandas."""
    return type(value) not in _PLAIN and of_library(value, "pandas", "DataFrame")


def is_long(value: object) -> bool:
    """Say whether a value is a Series of pandas whose index has a level for each axis."""
    return of_library(value, "pandas", "Series") and value.index.nlevels > 1  # type: ignore[attr-defined]


def is_list_of_edges(value: object) -> bool:
    """Say whether a value is a DataFrame of pandas with three columns, of two ends and a count.

    Raises
    ------
    ValueError
        If it may be the matrix of three nodes as well: it has three lines, and rows and columns with other labels.
    """
    if not of_library(value, "pandas", "DataFrame") or value.shape[1] != 3:  # type: ignore[attr-defined]
        return False
    frame: Any = value
    if len(frame) != 3 or not all(kind.kind in "biuf" for kind in frame.dtypes[:2]):
        return True
    if frame.columns.tolist() in (frame.index.tolist(), [0, 1, 2]):
        return False
    raise ValueError(
        "a table of three lines and three columns whose labels differ may be the matrix of three nodes or a list of "
        f"edges, got the columns {frame.columns.tolist()}: give the matrix as an array, or the ends as words"
    )


def from_long(
    value: "pandas.DataFrame | pandas.Series", name: str, *, square: bool = False
) -> tuple[Array, Axes, bool]:
    """Return the array of a long table of pandas, its axes, and whether every cell had a line.

    The last column of a frame holds the counts, the others, or the levels of the index of a Series, the labels. Cells
    without a line are zero. With `square` both axes have the labels of either.
    """
    pandas = sys.modules["pandas"]
    if hasattr(value, "columns"):
        names = list(value.columns[:-1])
        keys, counts = [value[part] for part in names], np.asarray(_plain(value.iloc[:, -1], name))
    else:
        names = list(value.index.names)
        keys = [value.index.get_level_values(level) for level in range(len(names))]
        counts = np.asarray(_plain(value, name))
    together = pandas.Index(np.concatenate([np.asarray(key, dtype=object) for key in keys])) if square else None
    places, axes = [], []
    for title, key in zip(names, keys, strict=True):
        places_of, labels = pandas.factorize(together if together is not None else key, sort=_sortable(key))
        if together is not None:
            places_of = pandas.Index(labels).get_indexer(key)
        if (places_of < 0).any():
            raise ValueError(f"`{name}` must have no missing labels, got {int((places_of < 0).sum())} in {title!r}")
        places.append(places_of)
        axes.append(Axis(title, tuple(labels.tolist())))
    shape = [len(axis.labels or ()) for axis in axes]
    refuse_large(shape, name)
    cells = np.ravel_multi_index(places, shape) if len(counts) else np.empty(0, dtype=np.intp)
    if len(np.unique(cells)) < len(cells):
        first = int(np.flatnonzero(np.bincount(cells)[cells] > 1)[0])
        found = ", ".join(str(key[first] if together is not None else list(key)[first]) for key in map(list, keys))
        raise ValueError(f"`{name}` must have one line for each cell, got several for ({found})")
    dense = np.zeros(shape, dtype=counts.dtype)
    dense.reshape(-1)[cells] = counts
    return dense, tuple(axes), len(cells) == dense.size


def _sortable(key: "pandas.Series") -> bool:
    """Say whether labels are numbers or times, which are put in order; words stay as they first appear."""
    return getattr(key.dtype, "kind", "O") in "iufM"


def refuse_large(shape: Sequence[int], name: str) -> None:
    """Refuse to make a table dense that memory has no room for, three times: the table, its noise and their sum."""
    cells = int(np.prod([int(extent) for extent in shape], dtype=object))
    if (needed := 24 * cells) > (limit := _check.available_memory()):
        message = f"`{name}` must fit into memory as a dense array: {cells} cells need about {needed} bytes"
        raise TooLargeError(f"{message}, and {limit} are available", needed, limit)


# As pandas has them.


def to_pandas(values: Array, named: Axes) -> "pandas.Series | pandas.DataFrame":
    """Return an array of one or two axes as a Series or DataFrame with labels."""
    from quincunx._optional import require

    pandas = require("pandas", "pandas")
    indices = [_index(pandas, axis) for axis in named or (Axis(),) * values.ndim]
    if values.ndim == 1:
        return pandas.Series(values, index=indices[0])
    if values.ndim == 2:
        return pandas.DataFrame(values, index=indices[0], columns=indices[1])
    raise ValueError(f"a data frame must have one or two axes, got an array of shape {values.shape}")


def _index(pandas: ModuleType, axis: Axis) -> "pandas.Index | None":
    if axis.labels is None:
        return None
    if axis.labels and all(isinstance(label, tuple) for label in axis.labels):
        names = axis.name if isinstance(axis.name, tuple) else None
        return pandas.MultiIndex.from_tuples(axis.labels, names=names)
    return pandas.Index(list(axis.labels), name=axis.name)


# As JSON has them.


def to_json(found: Axes) -> list[dict[str, object]]:
    """Return axes as JSON can hold them; what it has no form for becomes a string."""
    return [
        {
            "name": _encoded(axis.name),
            "labels": None if axis.labels is None else [_encoded(label) for label in axis.labels],
            **({"declared": True} if axis.declared else {}),
        }
        for axis in found
    ]


def from_json(value: Iterable[Facts], shape: Sequence[int]) -> Axes:
    """Return the axes of an array that `to_json` wrote."""
    found = tuple(
        Axis(
            _decoded(part["name"]),
            None if part["labels"] is None else tuple(_decoded(label) for label in part["labels"]),
            part.get("declared") is True,
        )
        for part in value
    )
    if found and (len(found) != len(shape) or not fitting(found, shape)):
        raise ValueError(f"its labels do not fit an array of shape {tuple(shape)}")
    return found


def reread(labels: Iterable[Hashable]) -> list[Hashable]:
    """Return labels as they come back from JSON, where some have become text: so they are compared."""
    return [_decoded(_encoded(label)) for label in labels]


def _encoded(label: object) -> object:
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, (bool, int, str)):
        return label
    if isinstance(label, float):
        return label if np.isfinite(label) else str(label)
    if isinstance(label, tuple):
        return [_encoded(part) for part in label]
    if isinstance(label, datetime.datetime) and label == label and not getattr(label, "nanosecond", 0):
        return {"datetime": label.isoformat()}
    if isinstance(label, datetime.date) and label == label and not getattr(label, "nanosecond", 0):
        return {"date": label.isoformat()}
    return str(label)


def _decoded(label: Json) -> Json:
    if isinstance(label, list):
        return tuple(_decoded(part) for part in label)
    if isinstance(label, dict):
        if "datetime" in label:
            return datetime.datetime.fromisoformat(label["datetime"])
        return datetime.date.fromisoformat(label["date"])
    return label
