"""Settings of the documentation site. Warnings are errors: see the `docs` session."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "burn"
author = "the burn maintainers"
version = release = "0.1.0"

# `reference` is the neighbour of this file; it writes the pages of the public names.
extensions = ["myst_parser", "reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "burn"
# Nothing on a page is fetched from elsewhere.
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
