"""The first blocks of the page about other trainers, pasted one below the other, show what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "trainers.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_opens_with_code_that_runs_and_says_its_error(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for place, block in enumerate(BLOCKS[:3]):
        exec(compile(block, f"block {place}", "exec"), space)
    assert (tmp_path / "heatmap.html").read_text(encoding="utf-8") == space["page"]
    assert "tensor([[ 0." in capsys.readouterr().out
    assert "credit/GTPO/weight_max" in space["stack"].metrics
    assert len(BLOCKS[0].strip().splitlines()) <= 13
    without = BLOCKS[0].replace("old_logprobs=", "sum_pi_squared=")
    with pytest.raises(ValueError, match="GTPO needs") as failure:
        exec(compile(without, "without", "exec"), {})
    assert f"StackError: {failure.value}" in PAGE.read_text(encoding="utf-8")
