from rlcredit.cli import startup
from rlcredit.cli.listing import MAX_LINE_WIDTH, list_sections, run_list_command
from rlcredit.config.paths import find_configs_folder
from rlcredit.credit.catalogue import find_operator_classes


def test_everything_that_can_be_named_is_listed_with_a_sentence(capsys):
    assert run_list_command([]) == 0
    shown = capsys.readouterr().out
    for operator in find_operator_classes():
        assert f"  {operator.__name__} " in shown
    for name in ("GSPO", "ReasoningGym", "Records", "sepa_paper/c1_grpo.yaml", "qwen3_4b.yaml", "tiny_smoke.yaml"):
        assert f"  {name} " in shown
    assert "  PolicyLoss" not in shown
    assert max(map(len, shown.splitlines())) <= MAX_LINE_WIDTH
    assert all(text for _, rows in list_sections() for _, text in rows)


def test_a_filter_keeps_lines_and_whole_groups(capsys):
    assert run_list_command(["hicra"]) == 0
    shown = capsys.readouterr().out
    assert "HICRA" in shown
    assert "maxrl_sepa_hicra.yaml" in shown
    assert "  GRPO " not in shown
    assert run_list_command(["models ("]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(list((find_configs_folder() / "models").glob("*.yaml")))


def test_a_filter_that_nothing_contains_says_so(capsys):
    assert run_list_command(["hiccup"]) == 1
    assert capsys.readouterr().out == "nothing contains 'hiccup'; `rlcredit list` names everything.\n"


def test_versions_name_what_is_installed():
    lines = dict(line.split(" ", 1) for line in startup.render_versions().splitlines())
    assert list(lines) == ["rlcredit", "torch", "lightning", "transformers", "peft"]
    assert lines["rlcredit"] == "0.1.0"
    assert lines["torch"][0].isdigit()
    assert startup._find_package_version("no-such-package") == "not installed"
