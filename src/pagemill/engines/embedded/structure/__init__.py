"""The structure stage: from lines, layout regions and rulings to blocks in reading order and Markdown.

Pure functions of geometry and text: no model, no I/O.
"""

from pagemill.engines.embedded.structure.build import Structure, build_blocks
from pagemill.engines.embedded.structure.markdown import render_markdown
from pagemill.engines.embedded.structure.text_layer import lines_from_text_layer

__all__ = ["Structure", "build_blocks", "lines_from_text_layer", "render_markdown"]
