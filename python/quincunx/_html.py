"""How a value shows itself in a notebook: one small table, names on the left."""

from collections.abc import Mapping
from html import escape


def table_html(title: str, rows: Mapping[str, object]) -> str:
    """Return a table with a title and a row for each name."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption>{cells}</table>"
