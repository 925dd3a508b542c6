"""Templates of pages: each extends one layout, and what it shows is escaped."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape

from rlcredit.base.text_escaping import escape_markdown

TEMPLATE_FOLDER = Path(__file__).parent
"""Folder of the layout, the style, the tables and the scripts that pages share."""


def load_page_template(path: Path) -> Template:
    """Return the template of a page, which escapes what HTML or Markdown would take for markup.

    Args:
        path: Path of the template; its ending decides how values are escaped.

    """
    templates = Environment(
        loader=FileSystemLoader((path.parent, TEMPLATE_FOLDER)),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["verdict_class"] = find_verdict_class
    templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    if path.suffix == ".md":
        templates.finalize = lambda value: escape_markdown(value) if isinstance(value, str) else value
    return templates.get_template(path.name)


def find_verdict_class(verdict: str) -> str:
    """Return the class of the shared style that colours a verdict.

    Example:
        >>> find_verdict_class("undecided: a new campaign needs 16 seeds"), find_verdict_class("equivalent within 1 pp")
        ('undecided', 'equivalent')
        >>> find_verdict_class("no room: a lead of 1.9 pp at most was possible; it may be behind")
        'undecided'

    """
    if verdict.startswith(("could not decide", "no room")):
        return "undecided"
    return verdict.split()[0].removesuffix(":")
