"""The directive ``measured``: a table of what a bench kept in `benches/measured.jsonl`, so that no figure is typed.

Its argument is the bench; ``:only:`` has words of which a row's name must contain one. A row is a figure of ours beside
those of peers that did the same in the same process, as times ours; under the table stand day, commit and machine.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MEASURED = Path(__file__).resolve().parents[2] / "benches" / "measured.jsonl"


def runs() -> dict[str, Any]:
    """Return the last run of each bench."""
    return {run["bench"]: run for run in map(json.loads, MEASURED.read_text().splitlines())}


def told(seconds: float) -> str:
    """Return a time in the unit that suits it, with two digits."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        value = seconds * factor
        if value >= 0.995 or unit == "ns":
            return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"
    return ""


def times(ratio: float) -> str:
    """Return a ratio with two digits, spaced by thousands."""
    if ratio < 9.95:
        return f"{ratio:.2g}" if ratio < 0.995 else f"{ratio:.1f}"
    return f"{float(f'{ratio:.2g}'):,.0f}".replace(",", " ")


def table(run: dict[str, Any], only: list[str]) -> str:
    """Return the lines of a table in Markdown and the line under it."""
    figures = [figure for figure in run["figures"] if not only or any(word in figure["what"] for word in only)]
    if not figures:
        raise ValueError(f"{run['bench']} kept nothing that is called {only}")
    beside = any(figure["peers"] for figure in figures)
    lines = ["| | ours |" + (" times ours |" if beside else ""), "|---|--:|" + ("---|" if beside else "")]
    rows: dict[str, tuple[float, list[str]]] = {}
    for figure in figures:
        ours, peers = rows.setdefault(figure["what"], (figure["ours"], []))
        peers += [f"{peer} {times(value / ours)}" for peer, value in figure["peers"].items()]
    for what, (ours, peers) in rows.items():
        lines.append(f"| {what} | {told(ours)} |" + (f" {', '.join(peers)} |" if beside else ""))
    command = shlex.join(["python", f"benches/bench_{run['bench']}.py", *run["arguments"]])
    busy = "; the machine was busy: compare ratios" if max(run["load"]) > 0.5 * run["cores"] else ""
    lines += [
        "",
        f"`{command}`, {run['day']}, commit {run['commit']}, {run['build']} build, {run['cores']} cores, "
        f"load {run['load'][0]:g} to {run['load'][1]:g}{busy}. One thread here adds {run['additions'] / 1e9:.1f} "
        "thousand million words of 64 bits a second out of its caches."
        + (f" {', '.join(f'{peer} {version}' for peer, version in run['peers'].items())}." if run["peers"] else ""),
    ]
    return "\n".join(lines)


class Measured(SphinxDirective):
    """The table of one bench."""

    required_arguments = 1
    option_spec = {"only": directives.unchanged}  # noqa: RUF012 -- as docutils has it

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        self.env.note_dependency(str(MEASURED))
        only = [word.strip() for word in self.options.get("only", "").split(";") if word.strip()]
        run = runs().get(self.arguments[0])
        missing = f"Not measured yet: `python benches/measuring.py {self.arguments[0]}`."
        return self.parse_text_to_nodes(table(run, only) if run else missing)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
