"""Draws as an xarray DataTree with dimensions and coordinates, as ArviZ makes it."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

import quincunx
from quincunx._optional import require
from quincunx._types import Array, DataTree


def datatree(
    groups: Mapping[str, Mapping[str, npt.ArrayLike]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Sequence[object] | Array],
    about: Mapping[str, object],
) -> DataTree:
    """Return groups of arrays as a DataTree; empty groups are left out.

    Arrays of all groups but the data have leading axes (chain, draw). A dimension without coordinates is
    numbered. `about` becomes attributes of ``posterior``, beside the library and its version.
    """
    arviz = require("arviz_base", "arviz")
    labels: dict[str, object] = {}
    for group, arrays in groups.items():
        lead = 2 if group in ("posterior", "sample_stats", "log_likelihood", "posterior_predictive") else 0
        for name, array in arrays.items():
            for dim, length in zip(dims.get(name, ()), np.shape(array)[lead:], strict=False):
                labels[dim] = np.arange(length)
    labels |= {dim: values for dim, values in coords.items() if dim in labels}
    named = {name: list(axes) for name, axes in dims.items()}
    facts = {"inference_library": "quincunx", "inference_library_version": quincunx.__version__, **about}
    full = {name: dict(group) for name, group in groups.items() if group}
    tree: DataTree = arviz.from_dict(
        full, coords=labels, dims=named, attrs={"posterior": facts} if "posterior" in full else None
    )
    return tree
