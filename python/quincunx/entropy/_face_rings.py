"""Bounds of face models by rings and strips of few columns: theorem A' for any weights with one mirror.

The row operator of n columns acts on all words of n letters, face by face: ``K[a, b, c, d]`` holds the weights of a
face, of the vertex c below, of its bonds to a above and to d. All terms are positive, so that an entry of ``T x`` is
right to one rounding for each product and sum on the way, and Collatz and Wielandt's quotients enclose the root.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quincunx import _check
from quincunx._types import Facts, Floats
from quincunx.entropy._models import FaceModel
from quincunx.entropy._numbers import root_above, root_below, zeros
from quincunx.entropy._strips import Proof, Root

#: Numbers of the largest array on the way, by whether digits are asked for.
MOST_NUMBERS = {False: 1 << 17, True: 1 << 24}

#: Power steps at most, after which the ends are as proved but wider; and between two looks at the quotients, which take
#: four images more. Neither is tuned.
_STEPS, _LOOK = 4000, 20

#: Decimals of the ends, a few more than doubles prove.
_PLACES = 18


class _Kernel(NamedTuple):
    """A face with all that belongs to it, over `scale`; what closes a strip on its right; pairs that are allowed."""

    face: Floats
    end: Floats
    fits: npt.NDArray[np.bool_]
    scale: Fraction


def _kernel(model: FaceModel) -> _Kernel:
    lines, faces = model._parts()
    face = faces * lines[None, None, :, :]
    end = model.bonds[1] * model.vertices[None, :]
    scale = face.max()
    face, end = (table.astype(np.float64) for table in (face / scale, end / end.max()))
    return _Kernel(face, end, (lines > 0).astype(bool), scale)


def _ring(kernel: _Kernel, x: Floats) -> Floats:
    """Return the image of a vector, shape (q,) * n, by the row operator of a ring."""
    q, n = x.shape[0], x.ndim
    # The first letters above and below stay to the end: they come first.
    state = np.einsum("avr,avtw->atwvr", x.reshape(q, q, -1), kernel.face).reshape(q * q, q, q, -1)
    for _ in range(n - 2):
        state = _advance(kernel.face, state)
    closed: Floats = np.einsum("uxmtv,vutx->xmt", state.reshape(q, q, -1, q, q), kernel.face).reshape(x.shape)
    return closed


def _advance(face: Floats, state: Floats) -> Floats:
    """Take in one more letter below: (done, t, s, s' rest) to (done t, t', s', rest)."""
    q = face.shape[0]
    done, _, _, rest = state.shape
    part = state.reshape(done, q, q, q, rest // q)
    grown: Floats = np.einsum("Ltsvr,svtw->Ltwvr", part, face).reshape(done * q, q, q, rest // q)
    return grown


def _strip(kernel: _Kernel, ends: Floats, x: Floats) -> Floats:
    """Return the image of a vector by the row operator of a free strip, its outer letters weighted by `ends`."""
    q, n = x.shape[0], x.ndim
    if n == 1:
        return (x @ kernel.end) * ends * ends
    state: Floats = (ends[:, None, None] * x.reshape(1, q, -1)).reshape(1, q, q, -1)
    for _ in range(n - 1):
        state = _advance(kernel.face, state)
    # Letters below but the last, the last, the last above.
    closed: Floats = (np.einsum("mts,st->mt", state.reshape(-1, q, q), kernel.end) * ends).reshape(x.shape)
    return closed


def _root(image: Callable[[Floats], Floats], allowed: npt.NDArray[np.bool_], roundings: int) -> Root:
    """Return the root of a nonnegative operator on the words that are allowed, roundings of quotients included."""
    inside = allowed
    while True:  # a word that no word leads to adds nothing to the root
        reached = inside & (image(inside.astype(np.float64)) > 0)
        if (reached == inside).all():
            break
        inside = reached
    if not inside.any():
        return Root(Fraction(0), Fraction(0))
    x = inside.astype(np.float64)
    low, high = 0.0, np.inf
    for step in range(_STEPS):
        y = image(x)
        if step % _LOOK == 0:
            quotients = y[inside] / x[inside]
            # Any nonnegative vector bounds from below: that of the words whose quotients are almost the largest.
            for cut in (1.0, 1e-3, 1e-6, 1e-9):
                part = np.zeros_like(x)
                part[inside] = np.where(quotients >= quotients.max() * (1 - cut), x[inside], 0.0)
                held = part > 0
                low = max(low, float((image(part)[held] / part[held]).min()))
            before, high = high, min(high, float(quotients.max()))
            if high - low < 4e-16 * high or (step > 10 * _LOOK and high > before * (1 - 1e-16)):
                break
        # A shift, so that no opposite eigenvalue lasts.
        x = y + 0.3 * high * x if high < np.inf else y + x
        x = np.where(inside, x / x.max(), 0.0)
        if x[inside].min() < 1e-200:
            break
    slack = Fraction(roundings + 8, 2**52)
    return Root(Fraction(low) * (1 - slack), Fraction(high) * (1 + slack))


def _allowed(fits: npt.NDArray[np.bool_], n: int, *, ring: bool) -> npt.NDArray[np.bool_]:
    """Return which words of n letters have neighbors that are allowed."""
    q = fits.shape[0]
    words = np.ones(q, dtype=bool)
    for _ in range(n - 1):
        words = (words.reshape(-1, q)[:, :, None] & fits).reshape(-1)
    if ring:
        words = (words.reshape(q, -1, q) & fits.T[:, None, :]).reshape(-1)
    return words.reshape((q,) * n)


def ring_root(model: FaceModel, columns: int) -> Root:
    """Enclose the largest eigenvalue of the row operator of a ring of two columns or more."""
    kernel, q = _kernel(model), model.letters
    allowed = _allowed(kernel.fits, columns, ring=True)
    root = _root(lambda x: _ring(kernel, x), allowed, (columns + 1) * (q * q + 6))
    return Root(*(end * kernel.scale**columns for end in root))


def strip_root(model: FaceModel, columns: int, ends: Floats) -> Root:
    """Enclose that of a free strip, the letters of its outer columns weighted by `ends`."""
    kernel, q = _kernel(model), model.letters
    allowed = _allowed(kernel.fits, columns, ring=False)
    root = _root(lambda x: _strip(kernel, ends, x), allowed, (columns + 1) * (q * q + 6) + 4)
    # The weights of what closes the strip on its right are divided by their largest, in strips of any width.
    return Root(*(end * kernel.scale ** (columns - 1) for end in root))


def face_widths(model: FaceModel, *, long: bool) -> list[int]:
    """Return the columns of rings that fit."""
    q = model.letters
    widths = [n for n in range(4, 41, 2) if q ** (n + 3) <= MOST_NUMBERS[long]]
    return widths or [4]


def best_ends(model: FaceModel) -> Floats:
    """Return weights of outer letters with which narrow strips give most; any others are valid too."""
    from scipy import optimize

    q = model.letters

    def lost(logs: Floats) -> float:
        above, below = strip_root(model, 3, _weights(logs)), strip_root(model, 2, _weights(logs))
        return -float(above.lower / below.upper) if below.upper else 0.0

    if q == 1:
        return np.ones(q)
    options = {"maxfev": 25 * (q - 1), "xatol": 1e-3}
    found = optimize.minimize(lost, np.zeros(q - 1), method="Nelder-Mead", options=options)
    return _weights(found.x)


def _weights(logs: Floats) -> Floats:
    weights: Floats = np.exp(np.clip(np.concatenate([[0.0], logs]), -12, 12)).round(7)
    return weights


def face_ring_bounds(model: FaceModel, width: int, power: int, ends: Floats, factor: Fraction) -> Proof:
    """Return both ends of the constant times a factor, the theorem and the evidence.

    Left and right may be exchanged, so that the operator C of columns is symmetric: ``kappa**n <= tr C**n`` a row for
    even n, and ``kappa**p`` is at least the quotient of the roots of strips of ``p + 2q + 1`` and ``2q + 1`` columns.
    """
    narrow = max((width - power - 1) // 2 * 2, 0) + 1
    widest = max(width, narrow + power)
    _check.room(24 * model.letters ** (widest + 3), f"a strip of {widest} columns of {model.letters} letters")
    above, below = strip_root(model, narrow + power, ends), strip_root(model, narrow, ends)
    ring = ring_root(model, width)
    if not (below.upper and ring.upper):
        raise ValueError(f"`model` must allow pieces of any size, got {model!r}, which allows none of {width} columns")
    evidence: Facts = {
        "ring": width,
        "strips": (narrow + power, narrow),
        "power": power,
        "boundary_weights": [float(end) for end in ends],
        "strip_roots": [root.rounded() for root in (above, below)],
        "ring_root": ring.rounded(),
        "states": model.letters**width,
    }
    low, high = above.lower / below.upper * factor**power, ring.upper * factor**width
    places = _PLACES + zeros(high, width)
    return root_below(low, power, places), root_above(high, width, places), "A'", evidence
