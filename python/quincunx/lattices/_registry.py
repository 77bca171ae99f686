"""The registry of lattices, read once from the core: a row for each lattice of the field, and the names it goes by."""

from quincunx import _check, _core
from quincunx._core import NamedLattice

#: The rows by name.
LATTICES: dict[str, NamedLattice] = {row.name: row for row in _core.named_lattices()}

_KNOWN = {name: row.name for row in LATTICES.values() for name in (row.name, *row.aliases)}


def registered(name: object, argument: str = "name", also: tuple[str, ...] = ()) -> str:
    """Return the first name of a lattice that is given by any of its names, or by one of `also`."""
    if not isinstance(name, str):
        raise TypeError(f"`{argument}` must be a str, got {type(name).__name__}")
    word = "-".join(name.lower().replace("_", " ").replace("-", " ").replace(".", " ").split())
    if word in also:
        return word
    if word not in _KNOWN:
        known = ", ".join([*LATTICES, *also])
        raise ValueError(f"`{argument}` must be one of {known}, got {name!r}{_check.meant(word, [*_KNOWN, *also])}")
    return _KNOWN[word]


def below_insertions(kind: str | None) -> tuple[NamedLattice, int] | None:
    """Return the lattice that cliques were inserted into to make this one, and how often, if it is made so."""
    row, times = LATTICES.get(kind or ""), 0
    while row is not None and row.inserted_into is not None:
        row, times = LATTICES[row.inserted_into], times + 1
    return (row, times) if row is not None and times else None
