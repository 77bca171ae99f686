"""What CSS alone cannot do for narrow screens and slow lines: breaks in code, tables of words, heavy pages.

A line breaks in code behind a dot, a bracket, a comma or an equals sign, never in a name. A table of words tells each
cell its column, so that on a narrow screen its rows can stand as lists. A page that weighs more than `HEAVIEST` with
its pictures, texts compressed as servers send them, is a warning.
"""

import gzip
import re
from pathlib import Path

from bs4 import BeautifulSoup
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

HEAVIEST = 300_000
LONG = 18  # code of so many letters may have to break
LIST_FROM = 50  # letters in a row from which a table is one of words


def lay_out(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Mark the places where code may break, and the cells of tables of words."""
    body = context.get("body")
    if isinstance(body, str):
        body = re.sub(r'<span class="pre">([^<]+)(?=</span>)', breakable, body)
        context["body"] = listed(body) if "<table" in body else body


def breakable(code: re.Match[str]) -> str:
    """Return code with places to break."""
    text = code[1]
    if len(text) < LONG:
        return code[0]
    return '<span class="pre long">' + re.sub(r"(?<=[\w)\]])([.(,=/\[])(?=[\w&'\"*(\[-])", r"\1<wbr/>", text)


def listed(body: str) -> str:
    """Return a page whose tables of words tell each cell its column."""
    soup = BeautifulSoup(body, "html.parser")
    for table in soup.select("table.table, table.docutils"):
        heads = [head.get_text(" ", strip=True) for head in table.select("thead th")]
        rows = table.select("tbody tr")
        if heads and rows and sum(len(row.get_text()) for row in rows) > LIST_FROM * len(rows):
            table["class"] = [*table.get("class", []), "of-words"]
            for row in rows:
                for head, cell in zip(heads, row.find_all("td", recursive=False), strict=False):
                    cell["data-column"] = head
    return str(soup)


def lighten(app: Sphinx) -> None:
    """Give thumbnails of the gallery 64 colors, a quarter of the bytes."""
    for thumb in Path(app.srcdir, "gallery").rglob("thumb/*.png"):
        with Image.open(thumb) as picture:
            if picture.mode != "P":
                picture.convert("RGB").quantize(64).save(thumb, optimize=True)


def weigh(app: Sphinx, failure: Exception | None) -> None:
    """Warn of pages that are too heavy."""
    if failure or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        text = page.read_text(errors="replace")
        pictures = {(page.parent / source).resolve() for source in re.findall(r'<img[^>]* src="([^":]+)"', text)}
        weight = len(gzip.compress(text.encode())) + sum(weight_of(picture) for picture in pictures)
        if weight > HEAVIEST:
            logging.getLogger(__name__).warning("%s weighs %d kB", page.relative_to(app.outdir), weight // 1000)


def weight_of(picture: Path) -> int:
    """Return the bytes of a picture as it is sent."""
    data = picture.read_bytes() if picture.is_file() else b""
    return len(gzip.compress(data)) if picture.suffix == ".svg" else len(data)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all three."""
    app.connect("builder-inited", lighten, priority=900)  # when the gallery is there
    app.connect("html-page-context", lay_out)
    app.connect("build-finished", weigh)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
