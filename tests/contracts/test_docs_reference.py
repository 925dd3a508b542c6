"""The reference pages are what the code says, and explain whatever they name."""

import doctest

import pytest
import reference
import reference_options
import reference_text

from rlcredit.credit.catalogue import find_operator_classes


def test_every_page_is_current():
    for page in reference.CONTENTS:
        written = (reference.PAGES / page).read_text(encoding="utf-8")
        assert written == reference.render_reference_page(page), (
            f"{page} is not current. Run python scripts/reference.py."
        )


def test_every_operator_has_an_entry_that_describes_its_parameters():
    pages = "".join((reference.PAGES / page).read_text(encoding="utf-8") for page in ("operators.md", "probes.md"))
    for operator in find_operator_classes():
        entry = reference.render_class_entry(operator)
        assert entry in pages
        for name in reference.inspect.signature(operator).parameters:
            assert f"\n- `{name}`: " in entry, f"{operator.__name__} does not say what {name} is"


@pytest.mark.parametrize("module", [reference_text, reference_options], ids=lambda module: module.__name__)
def test_the_examples_of_the_generator_run(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed
