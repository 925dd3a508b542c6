import torch

from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.continuations import Continuations
from rlcredit.run_folder.layout import RunFolder
from rlcredit.training.postmortem import collect_postmortem, write_postmortem
from tests.conftest import KnownCritic


def test_a_postmortem_is_tensors_and_plain_python(rollout, tmp_path):
    rollout.trail = (("GRPO", rollout.advantages),)
    rollout.logprobs = rollout.old_logprobs.clone().requires_grad_()
    rollout.sources = ((7, object()), (9, object()))
    rollout.critic = KnownCritic()
    places = torch.tensor([0, 1])
    rollout.alternatives = WeightedTokens(places, places, places, torch.tensor([-1.0, -2.0]), torch.tensor([0.5, 0.25]))
    rollout.continuations = Continuations(places, places, places[:, None], places[:, None] < 2, *[torch.ones(2, 1)] * 2)
    known = collect_postmortem(rollout, {"loss": 0.5, "step": 12})
    said = write_postmortem(RunFolder(tmp_path).postmortem_file(12), known)
    path = tmp_path / "postmortem" / "step_000012.pt"
    assert said == f"The batch is kept in {path}."
    assert [each.name for each in path.parent.iterdir()] == ["step_000012.pt"]
    content = torch.load(path, weights_only=True)
    assert (content["loss"], content["prompts"], content["update"]) == (0.5, [7, 9], 0)
    assert content["facts"]["tokens"] == rollout.tokens
    assert not content["ledger"]["logprobs"].requires_grad
    assert torch.equal(content["trail"][0][1], rollout.advantages)
    assert torch.equal(content["facts"]["hidden"], rollout.hidden)
    assert content["ledger"]["alternatives"]["weights"].tolist() == [0.5, 0.25]
    assert content["ledger"]["continuations"]["completion_ids"].tolist() == [[0], [1]]
    assert (content["facts"].keys() | content["ledger"].keys()).isdisjoint({"oracle", "lookahead", "critic"})


def test_a_postmortem_of_some_rows_does_not_drag_the_others_along(rollout, tmp_path):
    rollout.completion_ids = torch.zeros(100_000, 6, dtype=torch.long)[:8]
    write_postmortem(RunFolder(tmp_path).postmortem_file(0, 1), collect_postmortem(rollout, {}))
    assert (tmp_path / "postmortem" / "step_000000_rank1.pt").stat().st_size < 50_000


def test_a_batch_that_cannot_be_kept_does_not_hide_the_fault(rollout, tmp_path):
    (tmp_path / "postmortem").write_text("in the way")
    assert write_postmortem(RunFolder(tmp_path).postmortem_file(3), collect_postmortem(rollout, {})).startswith(
        "The batch could not be kept in "
    )
