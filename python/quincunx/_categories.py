"""Declared categories: which values a variable may have, public, in an order, and never inferred from private data.

    code = place of a label in the declaration,    label = declaration[code],    codes are 0..k-1

A declaration is the number k, whose labels are the codes themselves, or a sequence of different labels: strings,
numbers or truth values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np

from quincunx import _check
from quincunx._tables import axes, of_library
from quincunx._types import Array

T = TypeVar("T")
#: The number of categories, or their labels in order.
CategoriesLike: TypeAlias = "Categories | int | Sequence[Hashable] | Array"


@dataclass(frozen=True)
class Categories:
    """What was declared: the number k, or the labels."""

    declared: int | tuple[Hashable, ...]

    @classmethod
    def of(cls, value: object, name: str, *, maximum: int = 2**31) -> Categories:
        """Return a declaration of at least two categories.

        Raises
        ------
        TypeError, ValueError
            If it is neither a whole number nor a sequence of different labels of one kind.
        """
        if isinstance(value, Categories):
            return value
        _check.fits(value, name)
        several = isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1  # of NumPy or pandas
        if isinstance(value, (str, bytes)) or not several:
            if isinstance(value, (bool, int, float, np.number)):
                return cls(_check.whole(value, name, minimum=2, maximum=maximum))
            raise TypeError(f"`{name}` must be a whole number or a sequence of labels, got {type(value).__name__}")
        # list() would ask for the length, and believe it.
        labels = tuple([label.item() if isinstance(label, np.generic) else label for label in value])  # type: ignore[attr-defined]
        kinds = {type(label) for label in labels}
        if not (kinds <= {int, float} or kinds in ({str}, {bool})):
            found = sorted(kind.__name__ for kind in kinds)
            raise TypeError(f"`{name}` must be labels that are all strings, numbers or truth values, got {found}")
        if not 2 <= len(labels) <= maximum:
            raise ValueError(f"`{name}` must be between 2 and {maximum} labels, got {len(labels)}")
        _check.room(4 * len(labels) * max(len(label) if isinstance(label, str) else 2 for label in labels), name)
        array = np.array(labels)
        if array.dtype.kind not in "Uifb" or array.tolist() != list(labels):  # NaN differs from itself
            wrong = next((a for a, b in zip(labels, array.tolist(), strict=True) if a != b), labels[0])
            raise ValueError(f"`{name}` must be labels that an array of NumPy can hold, got {wrong!r}")
        if len(set(labels)) < len(labels):
            twice = Counter(labels).most_common(1)[0][0]
            raise ValueError(f"`{name}` must be different labels, got {twice!r} twice")
        return cls(labels)

    def __len__(self) -> int:
        return self.declared if isinstance(self.declared, int) else len(self.declared)

    @cached_property
    def labels(self) -> Array | None:
        """The labels as an array; None where they are the codes."""
        return None if isinstance(self.declared, int) else np.array(self.declared)

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        assert not isinstance(self.declared, int)
        return {label: code for code, label in enumerate(self.declared)}

    def encode(self, values: object, name: str) -> Array:
        """Return the codes of values, whole numbers of any kind, in the shape of the values.

        Raises
        ------
        ValueError, TypeError
            If a value is none of the categories; the message has the first one and its index.
        """
        if isinstance(self.declared, int):
            if getattr(getattr(values, "dtype", None), "kind", "") == "O":  # numbers that lay beside words
                values = np.asarray(np.asarray(values).tolist())
            try:
                return _check.categories(values, name, self.declared)
            except TypeError as error:
                raise TypeError(f"{error}; labels must be declared, as a sequence") from None
        array = _check.unmasked(values, name)
        if isinstance(values, (list, tuple)):
            array = np.asarray(values, dtype=object)  # of words and numbers together NumPy makes words
        _check.room(72 * array.size, f"an array of the codes of `{name}`")
        found = array.reshape(-1).tolist()
        try:
            codes = np.fromiter((self._codes.get(value, -1) for value in found), dtype=np.int64, count=len(found))
        except TypeError:
            raise TypeError(f"`{name}` must hold labels of categories, got values that are none") from None
        if codes.size and codes.min() < 0:
            wrong = found[int(np.argmax(codes < 0))]
            _, place = _check.first(codes.reshape(array.shape) < 0)
            raise ValueError(f"`{name}` must hold categories among {self._shown()}, got {wrong!r}{place}")
        return codes.reshape(array.shape)

    def decode(self, codes: Array) -> Array:
        """Return the labels of codes."""
        return codes if self.labels is None else self.labels[codes]

    @property
    def plain(self) -> int | list[Hashable]:
        """The declaration as JSON holds it."""
        return self.declared if isinstance(self.declared, int) else list(self.declared)

    def columns(self, rows: T, name: str) -> T:
        """Return rows with a column for each category; where the last axis of a table or release has labels, by them.

        Raises
        ------
        ValueError
            If the labels of the last axis are not the categories.
        """
        if (known := axes(rows)) == () or known[-1].labels is None:
            return rows
        found = list(known[-1].labels)
        if (wanted := self.order(found, name)) == found:
            return rows
        if of_library(rows, "pandas", "DataFrame", "Series"):
            return rows[wanted]  # type: ignore[index, no-any-return]
        return _check.unmasked(rows, name)[..., [found.index(label) for label in wanted]]  # type: ignore[return-value]

    def order(self, labels: list[Hashable], name: str) -> list[Hashable]:
        """Return the labels of an axis in the order of the categories; of codes, names of one's own stay as they are.

        Raises
        ------
        ValueError
            If they are not the categories.
        """
        codes: list[Hashable] = list(range(len(self)))
        wanted = codes if isinstance(self.declared, int) else list(self.declared)
        if labels != codes and set(labels) == set(wanted) and len(labels) == len(self):
            return wanted
        if labels == codes or self.labels is None:
            return labels
        raise ValueError(f"`{name}` must have the columns {self._shown()}, got {labels[:8]}")

    def _shown(self) -> str:
        assert not isinstance(self.declared, int)
        first = ", ".join(repr(label) for label in self.declared[:8])
        return f"[{first}, ...]" if len(self.declared) > 8 else f"[{first}]"


def of_words(words: Sequence[str], where: str) -> int | list[str]:
    """Return a number of categories, or labels, as the command line has them; `where` begins the message of an error.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    if len(words) == 1 and words[0].isdigit():
        return int(words[0])
    if len(words) < 2:
        raise ValueError(f"{where}: must be a number or at least two categories, got {list(words)}")
    return list(words)
