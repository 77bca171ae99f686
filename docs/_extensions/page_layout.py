"""What CSS alone cannot do for narrow screens and slow lines: breaks in code, tables of words, heavy pages.

A line breaks in code behind a dot, a bracket, a comma or an equals sign, never in a name, but for names that are wider
than a telephone; those, and names that are titles, break between their words. A table of words tells each
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
WIDE = 26  # so many in a name fill the line of a telephone
LIST_FROM = 50  # letters in a row from which a table is one of words


def lay_out(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Mark the places where code may break, and the cells of tables of words."""
    body = context.get("body")
    if isinstance(body, str):
        body = re.sub(r'<span class="pre">([^<]+)(?=</span>)', breakable, body)
        body = re.sub(r"(?<=<h1>)[\w.]+(?=<)", lambda name: between_words(name[0]), body)
        body = re.sub(r'(?:<span class="classifier">|<dt>)[^<]+', lambda types: long_names(types[0]), body)
        context["body"] = listed(body) if "<table" in body else body
    if isinstance(beside := context.get("toc"), str):  # the list at the right
        context["toc"] = re.sub(rf'(?<="pre">)[\w.]{{{LONG},}}', lambda name: between_words(name[0]), beside)


def break_sidebar(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Mark the places where names of the theme's list at the left may break."""
    if callable(tree := context.get("generate_toctree_html")):
        names = re.compile(rf"(?<=>)[\w.]{{{LONG},}}(?=</a>)")
        context["generate_toctree_html"] = lambda *how, **more: names.sub(
            lambda name: between_words(name[0]), str(tree(*how, **more))
        )


def breakable(code: re.Match[str]) -> str:
    """Return code with places to break."""
    text = code[1]
    if len(text) < LONG:
        return code[0]
    text = re.sub(r"(?<=[\w)\]])([.(,=/\[])(?=[\w&'\"*(\[-])", r"\1<wbr/>", text)
    return '<span class="pre long">' + long_names(text)


def long_names(text: str) -> str:
    """Return text whose names that are wider than a telephone may break on it."""
    return re.sub(rf"[\w.]{{{WIDE},}}", lambda name: between_words(name[0], "narrow"), text)


def between_words(name: str, screens: str = "all") -> str:
    """Return a name with places to break between its words, on all screens or on narrow ones."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-zA-Z0-9][_.])(?=\w)", f'<wbr class="{screens}"/>', name)


def listed(body: str) -> str:
    """Return a page whose tables of words tell each cell its column."""
    soup = BeautifulSoup(body, "html.parser")
    for table in soup.select("table.table, table.docutils"):
        heads = [head.get_text(" ", strip=True) for head in table.select("thead th")]
        rows = table.select("tbody tr")
        words = sum(len(row.get_text()) for row in rows) > LIST_FROM * len(rows)
        names = len(table.select("tbody code")) > 1.5 * len(rows)
        if heads and rows and (words or names):
            table["class"] = [*table.get("class", []), "of-words"]
            for row in rows:
                for head, cell in zip(heads, row.find_all("td", recursive=False), strict=False):
                    if head and cell.get_text(strip=True):
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
    """Register all of them."""
    app.connect("builder-inited", lighten, priority=900)  # when the gallery is there
    app.connect("html-page-context", lay_out, priority=400)  # before the theme makes its lists,
    app.connect("html-page-context", break_sidebar, priority=900)  # and when it has
    app.connect("build-finished", weigh)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
