"""A condition with the code that it names."""

import pytest
import yaml

from rlcredit.card.named import resolve_card_condition
from tests.rlcredit.card.cards import OWN


def test_a_file_of_ones_own_goes_beside_its_condition(own, tmp_path):
    found = resolve_card_condition(str(own))
    written = found.written(tmp_path / "card")
    assert yaml.safe_load(written.read_text())["trainer"]["callbacks"] == ["GRPO", "own_doubled.Doubled"]
    assert (written.parent / "own_doubled.py").read_text() == OWN


def test_what_it_imports_from_beside_itself_goes_with_it(own, tmp_path):
    (tmp_path / "own_factors").mkdir()
    (tmp_path / "own_factors" / "two.py").write_text("TWO = 2\n")
    own.write_text(OWN + "\n\nfrom own_factors.two import TWO\n")
    resolve_card_condition(str(own)).written(tmp_path / "card")
    assert (tmp_path / "card" / "own_factors" / "two.py").read_text() == "TWO = 2\n"


def test_a_condition_brings_the_modules_beside_it(own, tmp_path):
    (tmp_path / "mine.yaml").write_text("trainer: {callbacks: [GRPO, own_doubled.Doubled]}\n")
    written = resolve_card_condition(str(tmp_path / "mine.yaml")).written(tmp_path / "card")
    assert (written.parent / "own_doubled.py").read_text() == OWN


def test_code_that_is_edited_while_it_is_measured_is_refused(own, tmp_path):
    judged = resolve_card_condition(str(own))
    judged.written(tmp_path / "card")
    own.write_text(OWN.replace("2 *", "3 *"))
    with pytest.raises(ValueError, match=r"own_doubled\.py was edited while Doubled was measured\. Begin again"):
        judged.refuse_edits()
    with pytest.raises(ValueError, match="Begin again"):
        judged.written(tmp_path / "card")


def test_modules_of_an_earlier_card_do_not_stay(own, tmp_path):
    stale = tmp_path / "card" / "own_doubled" / "__init__.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    resolve_card_condition(str(own)).written(tmp_path / "card")
    assert [file.name for file in (tmp_path / "card").rglob("*.py")] == ["own_doubled.py"]
