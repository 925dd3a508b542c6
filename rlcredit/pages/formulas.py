"""Formulas of docstrings as MathML, which browsers draw by themselves."""

import html
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element

REFUSED_ATTRIBUTES = {"href", "style", "class", "id"}
"""Attributes by which a formula would act on the page around it."""


def render_formula(latex: str) -> str:
    r"""Return a formula as MathML, or as its LaTeX where it cannot be read or acts on its page.

    The formula may come from a card of somebody else's. The library's own text of it would leave its ``\text`` as
    markup, so the elements are written here, with all of their text escaped.

    Args:
        latex: Formula without its dollar signs.

    Example:
        >>> render_formula("w_t")[71:-14]
        '<msub><mi>w</mi><mi>t</mi></msub>'
        >>> render_formula("a^")
        '<pre>a^</pre>'

    """
    try:
        math_element = convert_to_element(latex, display="block")
    except Exception:  # noqa: BLE001  (the library's errors have no common class: StopIteration is one)
        math_element = None
    if math_element is None or any(REFUSED_ATTRIBUTES & element.attrib.keys() for element in math_element.iter()):
        return f"<pre>{html.escape(latex)}</pre>"
    for element in math_element.iter():
        element.text = html.unescape(element.text or "")
    return ElementTree.tostring(math_element, encoding="unicode")
