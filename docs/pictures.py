"""The three pictures of the README and of the first page, as SVG: ``python docs/pictures.py`` writes them.

They are small texts, made from the package itself at fixed seeds; `tests/test_pictures.py` draws them again.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quincunx import counting, factorization, lattices, privacy

FOLDER = Path(__file__).parent / "_static"
WIDTH, HEIGHT = 360, 190  # of each picture, in pixels
INK, FAINT, BLUE, RED = "#1f2937", "#9ca3af", "#0e7490", "#c2410c"


def svg(*parts: str, title: str) -> str:
    """Put parts on a white page that stays white where the reader's screen is dark."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n<title>{title}</title>\n'
    )
    page = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fff"/>\n'
    return head + page + "\n".join(parts) + "\n</svg>\n"


def text(x: float, y: float, words: str, *, size: int = 11) -> str:
    """Write words at a place."""
    style = f'font-family="system-ui, sans-serif" font-size="{size}" fill="{INK}" text-anchor="middle"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{words}</text>'


def squares(corners: Iterable[tuple[float, float]], side: float, color: str) -> str:
    """Draw squares of one color as one path; neighbors in a row become one piece."""
    pieces: list[list[float]] = []
    for x, y in corners:
        if pieces and pieces[-1][1] == y and pieces[-1][0] + pieces[-1][2] == x:
            pieces[-1][2] += side
        else:
            pieces.append([x, y, side])
    path = "".join(f"M{x:g} {y:g}h{width:g}v{side:g}h-{width:g}z" for x, y, width in pieces)
    return f'<path fill="{color}" d="{path}"/>'


def lattice() -> str:
    """Draw one of the 4-8-8 lattice's independent sets, each as likely as any other."""
    octagons = lattices.four_eight_eight(4, 8)
    chosen = set(counting.random_independent_set(octagons, rng=488).tolist())
    number = counting.count_independent_sets(octagons)
    places = octagons.positions[:, ::-1]
    places = places - places.min(axis=0)
    scale = min((WIDTH - 24) / places[:, 0].max(), (HEIGHT - 48) / places[:, 1].max())
    places = places * scale
    places = np.round(places + np.array([(WIDTH - places[:, 0].max()) / 2, 12]), 1)
    lines = "".join("M{:g} {:g}L{:g} {:g}".format(*places[a], *places[b]) for a, b in octagons.edges.tolist())
    disks = "".join(f'<circle cx="{x:g}" cy="{y:g}" r="4"/>' for x, y in places[sorted(chosen)])
    return svg(
        f'<path stroke="{FAINT}" stroke-width="1.2" fill="none" d="{lines}"/>',
        f'<g fill="{BLUE}">{disks}</g>',
        text(WIDTH / 2, HEIGHT - 14, f"one of {number:,} independent sets", size=10),
        title=f"A uniformly drawn independent set of the 4-8-8 lattice, one of {number}",
    )


def heat(values: NDArray[np.float64], left: float, top: float, side: float, highest: float) -> list[str]:
    """Draw a table as squares in eight shades; what is negative is red."""
    shades = np.clip(np.floor(8 * np.sqrt(np.maximum(values, 0) / highest)), 0, 7).astype(int)
    drawn = []
    for shade in range(8):
        where = np.argwhere((shades == shade) & (values > -0.5))
        color = "#{:02x}{:02x}{:02x}".format(*(int(245 + (dark - 245) * shade / 7) for dark in (14, 78, 100)))
        drawn.append(squares([(left + side * j, top + side * i) for i, j in where.tolist()], side, color))
    below = [(left + side * j, top + side * i) for i, j in np.argwhere(values <= -0.5).tolist()]
    return [*drawn, squares(below, side, "#fdba74")]


def posterior() -> str:
    """Draw private counts, their release, and the rates inferred from the release."""
    rng = np.random.default_rng(4)
    group, topic = np.arange(24) // 8, np.arange(18) // 6
    counts = rng.poisson(np.where(group[:, None] == topic, 9.0, 0.4) * rng.gamma(4.0, 0.25, (24, 1)))
    release = privacy.privatize(counts, epsilon=0.5, insecure_seed=1)  # a picture protects nobody
    model = factorization.PoissonFactorization(3, n_chains=2, n_draws=1750, random_state=0)
    rates = model.fit(release).rates_
    drawn = []
    for i, (name, values) in enumerate([("counts, secret", counts), ("released", release.values), ("inferred", rates)]):
        left = 14 + 115 * i
        drawn += heat(np.asarray(values, dtype=np.float64), left, 12, 6, 14.0)
        drawn.append(text(left + 54, HEIGHT - 14, name, size=12))
    return svg(*drawn, title="Counts, their release with noise, and the rates inferred from the release alone")


def log1p(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return logarithms by the C library: those of NumPy differ in their last bits with the machine's vectors."""
    return np.array([math.log1p(one) for one in x.tolist()])


def textbook_laplace(x: float, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Return the inverse distribution function of Laplace(1) at uniform multiples of 2**-53, in floats."""
    u = rng.integers(1, 2**53, size=size) * 2.0**-53 - 0.5
    return x - np.sign(u) * log1p(-2 * np.abs(u))


def impossible_from(x: float, outputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which textbook outputs no uniform number gives for x; the few that come near each are all tried."""
    center = np.rint(-np.expm1(-np.abs(outputs - x)) * 2.0**52)  # 2 |u| as a multiple of 2**-52
    possible = np.zeros(len(outputs), dtype=bool)
    for step in range(-12, 13):
        twice = (center + step) * 2.0**-52
        inside = (twice >= 0) & (twice < 1)
        magnitude = -log1p(-np.where(inside, twice, 0.0))
        possible |= inside & ((x + magnitude == outputs) | (x - magnitude == outputs))
    return ~possible


def noise() -> str:
    """Draw 300 outputs for the input 1, each in red if it shows that the input was not 0."""
    count = 300
    textbook = textbook_laplace(1.0, np.random.default_rng(1), count)
    mechanism = privacy.LaplaceMechanism(1.0, 0.0, 1.0)
    ours = mechanism.release(np.ones(count), insecure_seed=1).values  # a picture protects nobody
    ratio = mechanism.log_likelihood(ours, 1.0) - mechanism.log_likelihood(ours, 0.0)
    drawn = []
    for i, (name, betrayed) in enumerate(
        [("textbook Laplace", impossible_from(0.0, textbook)), ("quincunx", ~(np.abs(ratio) <= 1 + 1e-12))]
    ):
        left = 14 + 175 * i
        places = [(left + 8 * (k % 20), 14 + 8.5 * (k // 20)) for k in range(count)]
        for told, color in ((True, RED), (False, "#a5c9d3")):
            drawn.append(squares([places[k] for k in np.flatnonzero(betrayed == told).tolist()], 6.5, color))
        drawn.append(text(left + 79, HEIGHT - 25, f"{name}: {betrayed.mean():.0%}", size=12))
    drawn.append(text(WIDTH / 2, HEIGHT - 8, "noisy answers that prove, alone, that the input was not 0", size=10))
    return svg(*drawn, title="How many single outputs give the input away: textbook Laplace noise and ours")


PICTURES = {"lattice.svg": lattice, "posterior.svg": posterior, "noise.svg": noise}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw())
