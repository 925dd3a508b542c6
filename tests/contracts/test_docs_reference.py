"""The reference pages are what the code says, and explain whatever they name."""

import doctest

import docstring_markdown
import option_tables
import pytest
import render_reference

from rlcredit.credit.catalogue import find_operator_classes


def test_every_page_is_current():
    for page in render_reference.PAGE_CONTENTS:
        written = (render_reference.REFERENCE_FOLDER / page).read_text(encoding="utf-8")
        assert written == render_reference.render_reference_page(page), (
            f"{page} is not current. Run python scripts/render_reference.py."
        )


def test_every_operator_has_an_entry_that_describes_its_parameters():
    pages = "".join(
        (render_reference.REFERENCE_FOLDER / page).read_text(encoding="utf-8") for page in ("operators.md", "probes.md")
    )
    for operator in find_operator_classes():
        entry = render_reference.render_class_entry(operator)
        assert entry in pages
        for name in render_reference.inspect.signature(operator).parameters:
            assert f"\n- `{name}`: " in entry, f"{operator.__name__} does not say what {name} is"


@pytest.mark.parametrize("module", [docstring_markdown, option_tables], ids=lambda module: module.__name__)
def test_the_examples_of_the_generator_run(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed
