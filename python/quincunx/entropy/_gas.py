"""What is bounded, a model on a lattice to so many digits, and what is proved of it: a certified interval."""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from quincunx._progress import Progress
from quincunx._types import Facts
from quincunx.entropy._numbers import Enclosure, log_above, log_below
from quincunx.lattices import UnitCell

#: What is proved without being asked for more.
DEFAULT_DIGITS = 14

#: Decimals that an arithmetic can hold, roundings of wide strips included.
HELD = {"double": 14, "double-double": 28, "exact": 28}


@dataclass(frozen=True)
class EntropyBounds(Enclosure):
    """A certified interval of an entropy per vertex, in nats, with its evidence.

    Attributes
    ----------
    lower, upper : Decimal
        The ends: the entropy is at least `lower` and at most `upper`. They are rounded outwards.
    growth_constant : Enclosure
        The interval of the growth constant per vertex, of which the entropy is the logarithm.
    lattice : str
        The lattice.
    activity : Fraction
        The weight of what the model counts: occupied vertices, dimers.
    theorem : str
        The theorem the interval rests on, as ``docs/mathematics/entropy.md`` names it.
    method : str
        How it was found.
    evidence : dict
        What the theorem was applied to: rings, widths or bond dimension, enclosures, time.
    model : str
        What lives on the lattice.

    Examples
    --------
    >>> from quincunx.entropy import entropy_bounds
    >>> bounds = entropy_bounds("4-8-8", digits=18)
    >>> bounds.certified[:19], bounds.growth_constant.certified[:20]
    ('0.43797108506090129', '1.549560101335769447')
    """

    growth_constant: Enclosure
    lattice: str
    activity: Fraction
    theorem: str
    method: str
    evidence: Facts = field(default_factory=dict, compare=False)
    model: str = "independent-sets"


class Gas(NamedTuple):
    """What is bounded: a model on a lattice, to how many digits."""

    cell: UnitCell
    activity: Fraction
    digits: int | None
    progress: Progress
    model: str = "independent-sets"
    #: Nothing occupied is a configuration, of weight 1, so that the growth constant is at least 1.
    may_be_empty: bool = False

    @property
    def name(self) -> str:
        """The lattice's name."""
        return self.cell.kind or "a lattice without a name"

    @property
    def wanted(self) -> int:
        """The digits to prove."""
        return DEFAULT_DIGITS if self.digits is None else self.digits

    def bounds(self, kappa: Enclosure, theorem: str, method: str, evidence: Facts) -> EntropyBounds:
        """Return what was proved."""
        if self.may_be_empty:
            kappa = Enclosure(max(kappa.lower, Decimal(1)), kappa.upper)
        ends = log_below(kappa.lower), log_above(kappa.upper)
        return EntropyBounds(*ends, kappa, self.name, self.activity, theorem, method, evidence, self.model)

    def check(self, method: str, held: int, arithmetic: str) -> None:
        """Refuse what a method of doubles or double-doubles does not reach."""
        if self.digits is not None and self.digits > held:
            raise ValueError(f"`digits` must be at most {held} {arithmetic}, got {self.digits}")
        if not Fraction(1, 10**9) <= self.activity <= 10**9:
            raise ValueError(f"`activity` must be between 1e-9 and 1e9 for {method}, got {float(self.activity)}")
