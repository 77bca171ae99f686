"""How the documentation is built: ``sphinx-build -W docs docs/_build``.

The reference is made from ``__all__`` of each room, the gallery from the scripts in ``gallery_src``; neither is kept by
hand.
No network is asked: set QUINCUNX_DOCS_ONLINE=1 to link to the documentation of Python, NumPy, SciPy and networkx too.
"""

import os
import sys
from pathlib import Path

import matplotlib as mpl

import quincunx

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
mpl.use("agg")

project = "quincunx"
author = "The quincunx founders"
copyright = "2026, the quincunx founders"
release = version = quincunx.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "reference_pages",
    "linked_names",
    "measured_tables",
    "page_layout",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
templates_path = ["_templates"]
html_static_path = ["_static"]
exclude_patterns = [
    *("_build", "_templates", "gallery_src", "gallery/**.ipynb", "gallery/**.py", "gallery/**.json"),
    *("sg_execution_times.rst", "gallery/**sg_execution_times.rst"),  # nobody searches for them
]
suppress_warnings = ["config.cache"]  # sorting keys of the gallery are functions

default_role = "py:obj"
autosummary_generate = ["reference/index.rst"]
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say types with shapes and units
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # the list beside a class has names of methods, not the class many times
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery_src",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_|private_likelihood",
    "subsection_order": ["gallery_src/lattices", "gallery_src/counts", "gallery_src/privacy"],
    "thumbnail_size": (400, 260),
    "show_signature": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

intersphinx_mapping = (
    {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "networkx": ("https://networkx.org/documentation/stable", None),
    }
    if os.environ.get("QUINCUNX_DOCS_ONLINE")
    else {}
)

html_theme = "pydata_sphinx_theme"
html_title = "quincunx"
html_show_sourcelink = False
html_css_files = ["quincunx.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_persistent": ["search-button"],
    "github_url": "https://github.com/quincunx/quincunx",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "reproduction": [], "gallery/index": []},
}
