import json
import sys

import pytest

from callbacks.dense.tempo import TEMPO
from callbacks.episode.grpo import GRPO
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.tokens.conflict_mask import ConflictMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.random_mask import RandomMask
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.explain import describe_configuration, describe_stack, list_cited_papers
from rlcredit.losses import TEPO, ClippedSurrogate, KLPenalty
from rlcredit.tasks import Records


@pytest.mark.parametrize(
    ("thing", "papers"),
    [
        (TEPO(), ["2604.12736"]),
        (TEMPO(), ["2509.18314"]),
        (GTPO(), ["2508.04349"]),
        (ConflictMask(), ["2508.03772"]),
        (RandomMask(), []),
        (AnnealOut(TEMPO()), ["2509.18314"]),
        (KLPenalty(loss=ClippedSurrogate()), ["2402.03300", "1707.06347", "2503.14476", "1912.09729"]),
    ],
    ids=lambda thing: type(thing).__name__ if not isinstance(thing, list) else "",
)
def test_names_that_clash_are_told_apart_by_their_papers(thing, papers):
    assert list_cited_papers(thing) == papers


def test_a_line_of_the_stack_ends_with_the_papers():
    lines = list(describe_stack([GRPO(), GTPO(beta=0.0), RandomMask()], 4))
    assert lines[2].endswith("-> advantages, at most 0.75   arXiv:2503.20783   arXiv:2402.03300")
    assert lines[3].endswith("-> advantages   arXiv:2508.04349")
    assert lines[4].endswith("-> advantages")


def test_an_engine_that_decodes_ahead_is_said_to():
    lines = {}
    for name in ("vllm", "vllm_ahead"):
        found = resolve_condition(["--config", "configs/tiny.yaml", "--config", f"configs/engines/{name}.yaml"])
        lines[name] = describe_configuration(found.trainer, found.module, found.task, "grpo").splitlines()
    (added,) = [line for line in lines["vllm_ahead"] if line not in lines["vllm"]]
    assert added.startswith("engine     VLLMServer, one rollout ahead")
    assert len(lines["vllm_ahead"]) == len(lines["vllm"]) + 1


@pytest.fixture
def schedule(capsys, monkeypatch):
    """Return what the command says of steps and evaluations."""
    monkeypatch.setattr(sys, "argv", ["rlcredit"])

    def told(*arguments):
        run_lightning_command(["explain", "--config=configs/tiny.yaml", *map(str, arguments)])
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("schedule")]
        return line.removeprefix("schedule").strip()

    return told


@pytest.fixture
def table(tmp_path):
    """Hold a hundred and twenty sums, of which chance holds thirteen out."""
    rows = [json.dumps({"question": f"{n} + 4 =", "answer": n + 4}) for n in range(120)]
    (tmp_path / "sums.jsonl").write_text("\n".join(rows))
    return tmp_path / "sums.jsonl"


@pytest.mark.parametrize(
    ("settings", "steps", "asked"),
    [
        ([], 100, 13),
        (["--data.init_args.validation_size=6"], 100, 6),
        (["--trainer.limit_val_batches=2", "--data.init_args.validation_batch=4"], 100, 8),
        (["--trainer.max_epochs=2"], 26, 13),  # 107 // 8 steps an epoch
        (["--trainer.max_epochs=2", "--trainer.max_steps=20"], 20, 13),
    ],
)
def test_the_schedule_has_the_steps_and_questions_of_the_run(schedule, table, settings, steps, asked):
    told = schedule("--data=Records", f"--data.init_args.path={table}", *settings)
    said = f"{steps} steps, {steps * 128:,} completions; every 20 steps {asked} held-out questions x 4 completions"
    assert told == said
    task = Records(str(table))
    task.setup()
    assert (len(task.train_set), len(task.held_out_set)) == (107, 13)


def test_of_questions_that_were_not_read_the_most_is_said(schedule, table, tmp_path):
    assert schedule().endswith("every 20 steps 512 held-out questions x 4 completions")  # as many as are generated
    assert schedule("--data.init_args.validation_size=null").endswith("512 held-out questions x 4 completions")
    hub = ("--data=Records", "--data.init_args.path=nobody/knows")
    assert schedule(*hub).endswith("every 20 steps at most 512 held-out questions x 4 completions")
    other = tmp_path / "other.yaml"
    other.write_text(f"data: {{class_path: Records, init_args: {{path: {table}}}}}")
    told = schedule(f"--data.init_args.held_out={{other: {other}}}")
    assert told.endswith("512 held-out questions x 4 completions, 13 questions of other x 4 completions")
