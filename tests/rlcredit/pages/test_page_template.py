"""What a template shows is no markup."""

import json
import re

from rlcredit.pages.page_template import load_page_template

EVIL = "</script><!--<script>steal()</script> [a](b)"


def test_html_and_its_data_are_escaped(tmp_path):
    path = tmp_path / "own_page.html"
    path.write_text(
        '{% extends "token_page.html" %}{% block about %}{{ content.about }}{% endblock %}'
        "{% block footer %}{% endblock %}{% block own_script %}{% endblock %}"
    )
    text = load_page_template(path).render(content={"title": EVIL, "about": "é"})
    assert text.count("<script") == 2
    assert json.loads(re.search(r'id="data">(.*?)</script>', text)[1]) == {"title": EVIL, "about": "é"}
    assert "<title>&lt;/script&gt;" in text
    assert "é" in text


def test_markdown_is_escaped(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("{{ said }}")
    assert load_page_template(path).render(said=EVIL) == "&lt;/script>&lt;!--&lt;script>steal()&lt;/script> [a]\\(b)"
