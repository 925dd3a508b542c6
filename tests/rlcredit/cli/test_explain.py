import pytest

from callbacks.dense.tempo import TEMPO
from callbacks.episode.grpo import GRPO
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.tokens.conflict_mask import ConflictMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.random_mask import RandomMask
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cli.explain import describe_configuration, describe_stack, list_cited_papers
from rlcredit.losses import TEPO, ClippedSurrogate, KLPenalty


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
