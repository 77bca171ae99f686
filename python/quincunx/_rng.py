"""Random sources: what a user may give as `rng`, and the key that the core's streams are addressed by."""

from typing import TypeAlias

import numpy as np
from numpy.random import BitGenerator, Generator, SeedSequence

from quincunx._check import shown

RandomSource: TypeAlias = "int | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None"


# Sources whose raw output is what `integers` would give, at a tenth of its time. Mersenne's has 32 bits.
_WHOLE_WORDS = frozenset((np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64))


def generator(rng: RandomSource, name: str = "rng") -> np.random.Generator:
    """Return NumPy's generator for `None`, an int, a SeedSequence, a BitGenerator or a Generator."""
    if type(rng) is Generator:
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError(f"`{name}` must be at least 0, got {shown(int(rng))}")
    elif rng is not None and not isinstance(rng, (SeedSequence, BitGenerator, Generator)):
        kind = type(rng).__name__
        raise TypeError(f"`{name}` must be None, an int, a SeedSequence, a BitGenerator or a Generator, got {kind}")
    return np.random.default_rng(rng)


def key(rng: RandomSource, name: str = "rng") -> tuple[int, int]:
    """Return the two words that address the core's streams. A Generator advances once per call."""
    source = generator(rng, name)
    if type(source.bit_generator) in _WHOLE_WORDS:
        first, second = source.bit_generator.random_raw(2).tolist()
    else:
        first, second = source.integers(0, 2**64, size=2, dtype=np.uint64).tolist()
    return first, second
