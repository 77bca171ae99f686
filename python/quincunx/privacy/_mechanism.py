"""What mechanisms share: their state is their parameters; tables are made where they are used."""

from functools import cached_property
from typing import Any

from quincunx.privacy._guarantee import PrivacyGuarantee


class Mechanism:
    """A way of releasing data; equal to another of the same kind and parameters, and picklable."""

    guarantee: PrivacyGuarantee
    #: Whether `release` of a stack of data sets is a stack of independent releases, as `audit` draws them.
    stacks = True

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee."""
        return self.guarantee.delta

    def __getstate__(self) -> dict[str, Any]:
        cached = {name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))
