"""The site: python -m sphinx -j auto -W -b html docs site."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_site"), str(Path(__file__).parents[1])]

from rlcredit import __version__  # noqa: E402  (found by the line above)

project = "rlcredit"
author = "The rlcredit authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "root_pages",
]
exclude_patterns = ["README.md", "_site"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "toc.not_included"]  # pages of the root are linked, not listed
autosummary_generate = True
templates_path = ["_site/templates"]
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "member-order": "bysource",
    "ignore-module-all": True,
}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"rlcredit {release}"
html_css_files = ["wide.css"]
html_js_files = ["copy.js"]
html_static_path = ["_site/static"]
html_show_copyright = False
