"""Turns names in prose into links: `count_independent_sets` in a Markdown page leads to its page in the reference.

A literal links where it is the name of a public object, with or without its room, with or without a call behind it.
"""

import importlib
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import quincunx

NAME = re.compile(r"((?:\w+\.)*\w+)(?:\(.*\))?", re.DOTALL)


def public_names() -> dict[str, str]:
    """Return short name -> full name; a name that two rooms have must be written with its room."""
    full: dict[str, str] = {}
    seen: dict[str, int] = {}
    for room in quincunx._ROOMS:
        full[f"quincunx.{room}"] = f"quincunx.{room}"
        for name in importlib.import_module(f"quincunx.{room}").__all__:
            full[f"{room}.{name}"] = full[f"quincunx.{room}.{name}"] = f"quincunx.{room}.{name}"
            seen[name] = seen.get(name, 0) + 1
            full[name] = f"quincunx.{room}.{name}"
    return {short: name for short, name in full.items() if seen.get(short, 1) == 1}


class LinkNames(SphinxTransform):
    """Replace literals that are public names by references around the literal."""

    default_priority = 400

    def apply(self) -> None:
        """Walk over one page."""
        if self.env.docname.startswith(("reference", "gallery")):
            return
        names = public_names()
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.reference, addnodes.pending_xref)):
                continue
            match = NAME.fullmatch(literal.astext())
            target = match and names.get(match[1])
            if not target:
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False
            )
            link["refdoc"] = self.env.docname
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
