"""Tables 8.1 and 8.2 of Z. Zhang's thesis (2017): annealed entropies of randomly triangulated grids."""

import functools
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from quincunx.entropy._profile import profile, sweep

PROBABILITIES = (0.3, 0.5, 0.9)

#: Printed in table 8.1: the limit of long grids.
LIMITS = """
0.77932296726864 0.78213773426906 0.77085787963316
0.56617745580448 0.56777543927018 0.56156482815422
0.48903371824254 0.49063344553942 0.48436459137243
0.45193825107408 0.45340621564412 0.44769945558867
0.42929548846124 0.43072758929728 0.42515832764671
0.41430479539063 0.41569901252843 0.41028859427341
0.40356799600337 0.40493967122235 0.39962012472550
0.39552370200930 0.39687701253179 0.39163320947690
0.38926462553250 0.39060412280449 0.38541668087957
0.38425806847677 0.38558636349262 0.38044486767815
0.38016158614475 0.38148076455478 0.37637657279850
"""

#: Printed in table 8.2: grids of 100 columns.
HUNDREDS = """
0.78964843564591 0.79245384580572 0.78121022063039
0.57368686057915 0.57529460853630 0.56904352987573
0.49552251420460 0.49712828026730 0.49083451592644
0.45793589169533 0.45941235502240 0.45367054368683
0.43499371732890 0.43643409238543 0.43083081447020
0.41980460313994 0.42120757999449 0.41576114593824
0.40892577348357 0.41030632482455 0.40495032385232
0.40077503278234 0.40213738856693 0.39685644356716
0.39443314552337 0.39578179095878 0.39055680108048
0.38936034439968 0.39069787982204 0.38551846531132
0.38520966133618 0.38653815221735 0.38139575476258
"""


def printed(table: str) -> list[list[str]]:
    """Return the printed numbers, a row for each m."""
    return [line.split() for line in table.strip().splitlines()]


@functools.cache
def _both(m: int, p: Fraction) -> tuple[Decimal, Decimal]:
    """Return the entropies per cell of long grids and of 100 columns, to more digits than are printed."""
    # Integers of about 192 bits over powers of two: what is cut is below the last of 40 digits.
    shape = profile(m + 1)
    columns, exponent = np.full(len(shape.front), 1 << 192, dtype=object), -192
    log = before = Decimal(0)
    for n in range(100):
        columns = sweep(shape, columns, [p.numerator] * m, [p.denominator - p.numerator] * m, p.denominator)
        columns = columns // p.denominator**m
        shift = max(int(columns.max()).bit_length() - 192, 0)
        columns, exponent = columns >> shift, exponent + shift
        if n >= 98:
            with localcontext(Context(prec=40)):
                before, log = log, Decimal(int(columns.sum())).ln() + exponent * Decimal(2).ln()
    # The quotient of the last two counts misses the eigenvalue by the 99th power of the next one's fraction.
    with localcontext(Context(prec=40)):
        return (log - before) / m, log / (100 * m)


def computed(m: int, p: Fraction, *, limit: bool) -> Decimal:
    """Return the number that belongs in a table, to more digits than are printed."""
    return _both(m, p)[0 if limit else 1]


def wrong_entries(table: str, *, limit: bool) -> dict[tuple[int, float], Decimal]:
    """Return what belongs where a printed number is not the right one rounded to 14 digits."""
    wrong = {}
    for m, row in enumerate(printed(table), start=1):
        for p, entry in zip(PROBABILITIES, row, strict=True):
            value = computed(m, Fraction(str(p)), limit=limit)
            if f"{value:.14f}" != entry:
                wrong[m, p] = value
    return wrong


def tables() -> str:
    """Return both tables as computed, with a mark and the printed number where that is wrong."""
    lines = []
    for name, table, limit in (("8.1 (limit)", LIMITS, True), ("8.2 (100 columns)", HUNDREDS, False)):
        wrong = wrong_entries(table, limit=limit)
        lines.append(f"Table {name}: annealed entropy per cell, nats")
        lines.append(" m  " + "  ".join(f"p = {p:<12}" for p in PROBABILITIES))
        for m, row in enumerate(printed(table), start=1):
            cells = []
            for p, entry in zip(PROBABILITIES, row, strict=True):
                right = wrong.get((m, p))
                cells.append(entry if right is None else f"{right:.14f} (printed {entry})")
            lines.append(f"{m:2}  " + "  ".join(cells))
    return "\n".join(lines)
