"""What the documentation says about every operator is what the code says."""

import inspect
import re
from pathlib import Path

from callbacks import every_operator

OPERATORS = Path(__file__).parents[1] / "docs" / "operators.md"
WRITTEN = r"(?:sepa_lambda|plan_mask|signal|process|progress|advantages|nothing)(?:, process)?"
ROW = re.compile(rf"\| `(\w+)(?:\((.*?)\))?` \| .* \| ([a-z_, ]+) \| ({WRITTEN}) \|")


def test_every_operator_has_its_row_and_the_row_its_contract():
    rows = {match[1]: match.groups()[1:] for match in ROW.finditer(OPERATORS.read_text(encoding="utf-8"))}
    expected = {
        operator.__name__: (
            ", ".join(inspect.signature(operator).parameters) or None,
            ", ".join(sorted(operator.reads)) or "nothing",
            ", ".join(sorted(operator.writes)) or "nothing",
        )
        for operator in every_operator()
    }
    assert rows == expected
