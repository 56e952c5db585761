"""Sphinx configuration; run by `scripts/docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import efhc_jax  # noqa: E402

project = "efhc-jax"
author = "The efhc_jax developers"
copyright = "2026, the efhc_jax developers; MIT licence"
version = release = efhc_jax.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "commands",  # docs/extensions: reference of the command line, from --help
    "mathml",  # docs/extensions: formulas as MathML, so that pages need no network
    "github",  # docs/extensions: pages that also read well on GitHub
]
exclude_patterns = ["_build", "extensions", "performance/*.md"]  # the latter are copied into their page
suppress_warnings = ["toc.not_included"]  # generated tables are linked, not in the menu

html_theme = "sphinx_book_theme"
html_title = f"efhc-jax {release}"
html_theme_options = {
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "use_download_button": False,
    # The search field is above the list of pages, so the bar at the top is empty.
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
}
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "alert"]
myst_fence_as_directive = ["math"]  # as on GitHub
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 180
nb_execution_in_temp = True

# Docstrings put code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_rtype = False
napoleon_attr_annotations = False
python_maximum_signature_line_length = 90
add_module_names = False
# Shapes and types of other libraries are shown as written, without a link.
nitpick_ignore_regex = [("py:class", ".*")]


def setup(app):  # noqa: D103
    # The docstring of a field is its description as written; napoleon would interpret the text before a
    # colon as a type.
    described = {}

    def before(app, what, name, obj, options, lines):
        if what == "class" and options.get("members") and "Attributes:" in lines:
            del lines[lines.index("Attributes:") :]  # the members stand below with the same texts
        described[name] = list(lines)

    def after(app, what, name, obj, options, lines):
        if what == "attribute":
            lines[:] = described[name]

    app.connect("autodoc-process-docstring", before, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", after, priority=600)
