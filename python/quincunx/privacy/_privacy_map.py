"""Privacy maps: what a mechanism gives away to each pair of neighbors that a relation has, where that is proved.

A mechanism states its map and nothing else; `guarantee_of` (in `_guarantee`) asks it about the relation, and is the
only maker of guarantees. So no figure that a mechanism was given can speak of a relation for which it was not proved: a
privacy map answers with a curve, or raises `NoGuarantee`. Files call it "reach".

| privacy map | a mechanism whose |
|---|---|
| `PerEntry` | entries are records, each protected by itself |
| `Shift` | noise follows a distance of arrays, which are the data |
| `Declared` | user said what a neighbor moves: nothing is known of other distances than by the rule of groups |
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeAlias

from quincunx.privacy import _relations
from quincunx.privacy._curves import Curve
from quincunx.privacy._relations import ONE_RECORD, AddRemove, DataMetric, NoGuarantee, Relation, whole_steps


def unknown(what: str, relation: Relation) -> NoGuarantee:
    """Return the refusal to guarantee anything about a relation."""
    return NoGuarantee(f"no rule is known for {what} about {relation}: state a `sensitivity`")


@dataclass(frozen=True)
class PerEntry:
    """Each entry that differs shows one copy of a curve. `whole`: entries are whole numbers or categories."""

    curve: Curve
    whole: bool
    kind: ClassVar[str] = "per-entry"

    def at(self, relation: Relation) -> tuple[Curve, int]:
        """Return the curve at the neighbors of a relation, and how many independent copies of it they see."""
        if isinstance(relation, AddRemove):
            raise NoGuarantee(
                "a mechanism on single records gives out a row for each, and their number tells whether one was added: "
                "`relation` must be ReplaceOne() or a DataMetric"
            )
        real = isinstance(relation, DataMetric) and relation.metric != "hamming" and not self.whole
        entries = None if real else _relations.moved(relation, relation.radius)
        if entries is None:
            raise unknown("entries that are clipped or answered one by one", relation)
        return self.curve.repeated(entries)


@dataclass(frozen=True)
class Shift:
    """Noise on the array itself, which follows one distance of arrays.

    `unit` is what an array at distance 1 sees. At distance d its shift is ``d + rest`` units; for whole numbers,
    ``floor(d)`` at an L1 distance and, as their L1 distance is at most the square of their Euclidean one,
    ``floor(d**2)`` at that.
    """

    unit: Curve
    metric: str
    whole: bool
    rest: Fraction = Fraction(0)
    kind: ClassVar[str] = "shift"

    def at(self, relation: Relation) -> tuple[Curve, int]:
        """Return the curve at the neighbors of a relation, and how many independent copies of it they see."""
        if not (isinstance(relation, DataMetric) and relation.metric == self.metric):
            raise unknown(f"noise that follows the {self.metric} distance of arrays", relation)
        steps = whole_steps(relation.radius, self.metric) if self.whole else Fraction(relation.radius) + self.rest
        return self.unit.along(steps, self.metric), 1


@dataclass(frozen=True)
class Declared:
    """A curve that was said to hold for the neighbors of a relation, by the user or by a rule of this package.

    `words` is what was said, for `PrivacyGuarantee.protects` to repeat; `whole`: what is released are whole numbers.
    Nothing is known of other neighbors but that those nearer are fewer, and that those farther are joined by a chain of
    steps, where they are. Only one record that comes or goes fixes a direction: for every other relation a curve that
    bounds both is kept, also for fewer records.
    """

    curve: Curve
    relation: Relation
    words: str = ""
    whole: bool = False
    copies: int = 1
    kind: ClassVar[str] = "declared"

    def __post_init__(self) -> None:
        if self.relation != ONE_RECORD:
            object.__setattr__(self, "curve", self.curve.worst())

    def at(self, relation: Relation) -> tuple[Curve, int]:
        """Return the curve at neighbors of the same kind at another distance, and how many copies of it they see."""
        near = self.relation
        if relation == near:
            return self.curve, self.copies
        if isinstance(near, DataMetric) and isinstance(relation, DataMetric):
            comparable = near.metric == relation.metric
            near = replace(near, integers=near.integers or relation.integers)
        else:
            comparable = type(near) is type(relation)
        if not comparable:
            raise NoGuarantee(f"stated about {self.relation}; nothing is known about {relation}")
        if relation.radius <= near.radius:
            return self.curve, self.copies
        steps = near.chain(relation.radius)
        if isinstance(near, DataMetric) and self.whole:
            # What is released is whole; what the distance is between may be or not: the longer chain, if there is one.
            whole = near.chain(relation.radius, integers=True)
            steps = None if steps is None or whole is None else max(steps, whole)
        if steps is None:
            raise NoGuarantee(f"stated within {near.radius}; nothing is known at {relation.radius:g}")
        # Several copies and one step each: the rule of the group is one for each copy.
        return self.curve.group(steps), self.copies


PrivacyMap: TypeAlias = PerEntry | Shift | Declared
PRIVACY_MAPS: dict[str, type[PrivacyMap]] = {each.kind: each for each in (PerEntry, Shift, Declared)}
