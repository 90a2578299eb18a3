"""How Sphinx builds the documentation: ``python -m sphinx -W docs docs/_build``."""

import loclin

project = "loclin"
author = "The loclin developers"
copyright = author
version = release = loclin.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"loclin {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # docstrings say what parameters are
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = True
numpydoc_class_members_toctree = False
# The examples that are pages run in every build; names of files give their order.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("loclin",),
    "ignore_pattern": "^(?!plot_)",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),  # tables; nothing that differs from build to build
    "min_reported_time": float("inf"),
    "write_computation_times": False,
    "show_signature": False,
    "log_level": {"backreference_missing": "info"},  # not all functions have an example
}
# Labels of scikit-learn's documentation, in docstrings inherited from it.
suppress_warnings = ["ref.ref"]


def formulas_as_they_stand(app, what, name, obj, options, lines):
    """Show the indented formulas at the head of a docstring literally."""
    head = next((i for i, line in enumerate(lines) if line.startswith("---")), len(lines))
    starts = [
        i
        for i in range(2, head)
        if lines[i].startswith("    ") and not lines[i - 1] and not lines[i - 2].startswith(" ")
    ]
    for i in reversed(starts):
        if not lines[i - 2].endswith("::"):
            lines[i:i] = ["::", ""]


def setup(app):
    """Before numpydoc sees a docstring, whose priority is 500."""
    app.connect("autodoc-process-docstring", formulas_as_they_stand, priority=400)
