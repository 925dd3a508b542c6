"""Formulas as MathML, which browsers draw by themselves: no JavaScript, no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html import HTML5Translator


def visit_inline_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula inside a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
