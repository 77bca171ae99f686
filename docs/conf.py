"""How the documentation is built: ``sphinx-build docs docs/_build``."""

import quincunx

project = "quincunx"
author = "The quincunx founders"
release = version = quincunx.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
numpydoc_show_class_members = False
exclude_patterns = ["_build", "gallery_src"]
html_theme = "pydata_sphinx_theme"
html_title = "quincunx"
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "networkx": ("https://networkx.org/documentation/stable", None),
}
