"""Sphinx's settings for the site (`make site`). The pages are those of the repository; `scripts/site` lays them out for Sphinx."""

import pathlib
import tomllib

manifest = tomllib.loads((pathlib.Path(__file__).parent.parent / "Cargo.toml").read_text())
release = manifest["workspace"]["package"]["version"]

project = "Fulmar"
html_title = f"Fulmar {release}"
html_theme = "furo"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
# Code is there to be linked to; its own pages are no pages of the site.
include_patterns = ["*.md", "docs/**", "examples/**/*.md", "site/*.md"]
exclude_patterns = ["CHANGELOG.md"]

myst_enable_extensions = ["attrs_inline"]
# As on GitHub, each heading can be linked to.
myst_heading_anchors = 6
myst_links_external_new_tab = False
# Headings begin where the page's subject wants it; fences name languages that Pygments does not know.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
nitpicky = False

html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"footer_icons": [], "source_view_link": ""}
