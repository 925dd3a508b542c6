"""Names of runs and conditions stay inside the folder they are put in."""

import pytest

from rlcredit.config.allowed_values import validate_folder_name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0b", "-x", ".x", "a b", "é", "x" * 101, "x\n", None, 3, ["x"]],
)
def test_a_name_that_could_leave_its_folder_is_refused(name):
    with pytest.raises(ValueError, match=r"^condition: .* (cannot name|names) a folder[.:] ") as refused:
        validate_folder_name("condition", name)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("name", ["grpo", "c8_maxrl-sepa.2", "0", "x" * 100])
def test_other_names_are_kept(name):
    assert validate_folder_name("condition", name) == name
