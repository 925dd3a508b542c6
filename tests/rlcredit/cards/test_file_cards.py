"""A card of a batch from a file: what can be said without a run, and what is refused."""

import re
from dataclasses import replace

import pytest
import torch

from rlcredit import CreditStack, Rollout
from rlcredit.bridge import assign_credit, load_stack
from rlcredit.cards.card import Card
from rlcredit.cards.card_command import run_card_command
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.cards.file_cards import FileCards
from rlcredit.policy.model_loading import load_tokenizer
from rlcredit.policy.policy import Policy
from tests.conftest import make_rollout

VERDICTS = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder; return status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        try:
            status = run_card_command([*words, "--mlflow", "none"])
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return command


def make_bridged_batch(rewards=VERDICTS, **given):
    """A batch as a trainer of one's own leaves it, by way of the bridge."""
    rollout = make_rollout(VERDICTS, group_size=4, width=6)
    stack = load_stack("sepa_paper/c1_grpo")
    assign_credit(
        stack,
        completion_ids=rollout.completion_ids,
        mask=rollout.mask,
        rewards=rewards,
        groups=torch.arange(len(rewards)) // 4,
        **{name: getattr(rollout, name) for name in given.pop("facts", ())},
        **given,
    )
    return stack.rollout


def test_a_batch_of_our_own_is_put_through_the_batch_sections_with_its_texts(run, tmp_path):
    make_rollout(VERDICTS, group_size=4, width=6).save("batch.safetensors")
    status, said, _ = run("GTPO", "--rollout", "batch.safetensors")
    assert status == 0
    card = Card.read(tmp_path / "cards" / "batch" / "rollout" / "GTPO" / "card.json")
    assert {*card.sections} == {"batch"}
    assert card.verdict == "not trained"
    assert card.sentence.startswith("12 completions of 3 prompts at step 3, 58 % right")
    assert card.command() == "rlcredit card GTPO --rollout batch.safetensors --baseline GRPO"
    assert card.finding("moved").low <= card.finding("moved").estimate <= card.finding("moved").high
    assert {"order", "padding", "memory", "rewards"} <= {each.name for each in card.properties}
    page = (tmp_path / "cards" / "GTPO-on-batch" / "card.html").read_text()
    sentence = "A file holds a batch and no policy, verifier or run, so the gradient, true credit, learning and cost"
    for text in (page, said.replace("\n", " "), (tmp_path / "cards" / "GTPO-on-batch" / "card.md").read_text()):
        assert sentence in text
    assert "What it does to a batch" in page
    assert "The gradient</h2>" not in page
    assert max(map(len, said.splitlines())) <= 100


def test_credit_is_moved_as_in_the_formula(tmp_path):
    """Half of the credit of a completion of two tokens goes to the second where its surprisal is all there is."""
    rollout = Rollout(
        step=0,
        group_size=2,
        prompt_ids=torch.zeros(2, 1, dtype=torch.long),
        completion_ids=torch.tensor([[1, 2], [3, 4]]),
        mask=torch.ones(2, 2, dtype=torch.bool),
        old_logprobs=torch.tensor([[0.0, -1.0], [0.0, -1.0]]),
        entropy=torch.zeros(2, 2),
        correct=torch.tensor([1.0, 0.0]),
        tokens=[["a", "b"], ["c", "d"]],
    )
    rollout.save(tmp_path / "batch.safetensors")
    base = resolve_card_condition("GRPO")
    builder = FileCards(tmp_path / "batch.safetensors", base)
    card = builder.make_card(resolve_card_condition("GTPO(beta=1)"))
    assert card.finding("moved").estimate == pytest.approx(0.5)
    assert card.finding("moved_within").estimate == pytest.approx(1)
    itself = builder.make_card(base)
    assert itself.verdict == "the baseline itself"
    assert itself.finding("moved").estimate == 0


def test_what_nobody_gave_is_left_out_and_what_an_operator_needs_is_named(run, tmp_path):
    make_bridged_batch().save("bare.safetensors")
    status, *_ = run("GRPO(normalize_std=True)", "--rollout", "bare.safetensors")
    assert status == 0
    (file,) = (tmp_path / "cards").glob("bare/rollout/*/card.json")
    card = Card.read(file)
    assert card.finding("on_word") is card.finding("on_end") is card.finding("confidence") is None
    assert '"tokens": ["' in card.page
    assert "surprisal" not in card.page.split('id="data"')[1].split("</script>")[0]
    for operator, message in {
        "GTPO": "GTPO needs `old_logprobs`, which bare.safetensors does not give",
        "Entropy": "Entropy needs `entropy`, which bare.safetensors does not give",
        "HICRA": "StrategicGrams reads the texts of tokens, which bare.safetensors does not hold. Name the tokenizer",
        "GradientSizeMask": "GradientSizeMask needs `old_logprobs`, which bare.safetensors does not give",
        "ProcessSignal": "ProcessSignal needs `ref_logprobs`, which bare.safetensors does not give",
        "MonteCarloCredit": "MonteCarloCredit continues completions with the policy",
        "RidgeCritic": "RidgeCritic reads hidden states",
    }.items():
        status, _, error = run(operator, "--rollout", "bare.safetensors")
        assert status == 2
        assert message in error
        assert error.count("\n") == 1


def test_rewards_that_are_no_verdicts_are_said_and_operators_of_verdicts_refuse_them(run, tmp_path):
    rewards = [0.3, 1.5, -2.0, 0.0] * 3
    make_bridged_batch(rewards).save("partial.safetensors")
    assert run("GRPO", "--rollout", "partial.safetensors")[0] == 0
    card = Card.read(tmp_path / "cards" / "partial" / "rollout" / "GRPO" / "card.json")
    assert "rewards from -2 to 1.5" in card.sentence
    assert card.finding("saturated") is None
    status, _, error = run("MaxRL", "--rollout", "partial.safetensors")
    assert status == 2
    assert "MaxRL reads verdicts, and `rewards` hold 0.3" in error


def test_a_tokenizer_gives_texts_to_operators_and_to_the_page(run, tmp_path):
    ids = load_tokenizer(Policy().location)("First, 4 + 3 = 7", return_tensors="pt")["input_ids"][0]
    batch = make_bridged_batch()
    batch.completion_ids = ids[: batch.mask.shape[1]].expand(batch.mask.shape).clone()
    batch.save("batch.safetensors")
    status, said, _ = run("HICRA", "--rollout", "batch.safetensors", "--tokenizer", "tiny")
    assert status == 0
    assert "credit on" in said
    card = Card.read(tmp_path / "cards" / "batch" / "rollout" / "HICRA" / "card.json")
    assert card.command().endswith("--baseline GRPO --tokenizer tiny")


def test_several_operators_stand_beside_each_other(run, tmp_path):
    make_rollout(VERDICTS, group_size=4, width=6).save("batch.safetensors")
    status, said, _ = run("GTPO", "REPO", "--rollout", "batch.safetensors")
    assert status == 0
    assert re.search(r"^batch +moved +within +without +on the likely$", said, re.MULTILINE)
    assert [line.split()[0] for line in said.splitlines()[-2:]] == ["GTPO", "REPO"]
    assert "Operators on the same batch" in (tmp_path / "cards" / "GTPO-on-batch" / "card.html").read_text()
    assert not (tmp_path / "cards" / "leaderboard.html").exists()


def test_with_the_policy_that_sampled_it_the_batch_has_a_gradient(run, tmp_path):
    batch, policy = make_rollout(VERDICTS, group_size=4, width=6), Policy()
    policy.load()
    with torch.no_grad():
        scores = policy.score_completions(policy.read_prompts(batch.prompt_ids), batch.completion_ids, 0.7)
    batch.old_logprobs = scores.logprobs.where(batch.mask, 0)
    batch.save("batch.safetensors")
    status, said, _ = run("GTPO", "--rollout", "batch.safetensors", "--model", "tiny", "--temperature", "0.7")
    assert status == 0
    card = Card.read(tmp_path / "cards" / "batch" / "rollout" / "GTPO" / "card.json")
    assert 0 < card.finding("angle").estimate < 90
    assert card.finding("distance").estimate == pytest.approx(0, abs=1e-4)
    assert "so true credit, learning and cost are left out" in said.replace("\n", " ")
    assert card.command().endswith("--model tiny --temperature 0.7")
    assert run("GTPO", "--rollout", "batch.safetensors", "--model", "tiny")[0] == 0
    other = Card.read(tmp_path / "cards" / "batch" / "rollout" / "GTPO" / "card.json").finding("distance")
    assert other.estimate > 0.01


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "quick"], "--budget: does not go with a batch from a file."),
        (["--slots", "2"], "--slots: does not go with a batch from a file"),
        (["--organism", "decoy"], "--organism: does not go with a batch from a file"),
        (["--shipped"], "--shipped: does not go with a batch from a file"),
        (["--temperature", "1"], "--temperature: is that of the policy's log-probabilities."),
        (["--model", "tiny"], "batch.safetensors holds no prompts. Leave out --model, --adapter and --temperature."),
    ],
)
def test_options_that_say_nothing_about_a_batch_are_refused_in_one_sentence(words, message, run, tmp_path):
    make_bridged_batch().save("batch.safetensors")
    status, _, error = run("GTPO", "--rollout", "batch.safetensors", *words)
    assert status == 2
    assert message in error
    assert error.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["batch.safetensors"]


@pytest.mark.parametrize("option", ["tokenizer", "model", "adapter", "temperature"])
def test_options_of_a_batch_are_refused_without_one(option, run):
    status, _, error = run("GTPO", f"--{option}", "1")
    assert status == 2
    assert f"--{option}: is for a batch from a file. Name that with --rollout" in error


def test_files_that_are_no_batch_are_refused_by_name(run, tmp_path):
    assert "--rollout: there is no file nowhere" in run("GTPO", "--rollout", "nowhere")[2]
    (tmp_path / "text").write_text("no tensors")
    assert "text is no file of safetensors" in run("GTPO", "--rollout", "text")[2]
    batch = make_rollout(VERDICTS, group_size=4, width=6)
    broken = replace(batch, correct=batch.correct.index_fill(0, torch.tensor([2]), torch.nan))
    broken.save("nan.safetensors")
    assert (
        "nan.safetensors: correct is nan in row 2. Set judged to false"
        in run("GTPO", "--rollout", "nan.safetensors")[2]
    )
    empty = replace(batch, mask=torch.zeros_like(batch.mask), tokens=[[]] * 12)
    empty.save("empty.safetensors")
    assert "empty.safetensors holds no token" in run("GTPO", "--rollout", "empty.safetensors")[2]


def test_a_batch_that_has_credit_gets_that_of_the_card_and_no_other(tmp_path):
    credited = CreditStack(load_stack("sepa_paper/c2_grpo_gtpo").operators).assign(make_rollout(VERDICTS, 4, 6))
    credited.save(tmp_path / "batch.safetensors")
    card = FileCards(tmp_path / "batch.safetensors", resolve_card_condition("GRPO")).make_card(
        resolve_card_condition("GTPO")
    )
    assert re.search(r'"stack": "GRPO \S+ GTPO"', card.page)
