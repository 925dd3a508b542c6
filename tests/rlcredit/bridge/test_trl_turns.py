"""TRL's own multi-turn trainer with an environment: credit between turns reaches its loss, and nothing else has any."""

import warnings

import pytest
import torch

trl = pytest.importorskip("trl")
from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from callbacks import RLOO  # noqa: E402
from callbacks.turns.gigpo import GiGPO  # noqa: E402
from callbacks.turns.turn_returns import TurnReturns  # noqa: E402
from rlcredit.bridge.trl import CreditGRPOTrainer  # noqa: E402
from rlcredit.credit.contract import StackError  # noqa: E402
from rlcredit.credit.stack import CreditStack  # noqa: E402
from rlcredit.formulas.turns import count_turns, number_turns  # noqa: E402
from tests.rlcredit.bridge.test_trl import PATH, SETTINGS, norms  # noqa: E402

TOKENIZER = AutoTokenizer.from_pretrained(PATH, padding_side="left")
TOKENIZER.chat_template = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function.name }} {{ call.function.arguments }}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOKENIZER.response_template = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"the answer is (?P<number>-?\d+)\.<",
            "close": "|im_end|>",
            "repeats": True,
            "transform": {"type": "function", "function": {"name": "answer", "arguments": {"number": "{number}"}}},
        },
        "content": {"close_pattern": r"<\|im_end\|>|$", "content": "text"},
    },
}
"""What the embedded policy says at the end of a trace is the call of a tool."""

QUESTION = "State the final answer to the following arithmetic problem: {} + {} + {} ="
SUMS = Dataset.from_list(
    [
        {"prompt": [{"role": "user", "content": QUESTION.format(a, b, c)}], "total": a + b + c}
        for a in (2, 3)
        for b in (4, 5)
        for c in (1, 6)
    ]
)


class Sums:
    """An environment that judges every answer, and asks for another."""

    def reset(self, total, **_):
        """Begin an episode."""
        self.total = total
        self.rewards = []

    def answer(self, number: int) -> str:
        """Say what the sum is.

        Args:
            number: The sum.

        """
        self.rewards.append(float(int(number) == self.total))
        return "right" if self.rewards[-1] else "wrong"

    def get_reward(self):
        """The number of right answers."""
        return sum(self.rewards)


def log_turns(environments, log_extra, **_):
    """Hand on what each answer was worth; the reward is that of the environment."""
    log_extra("turn_rewards", [[*environment.rewards] for environment in environments])
    return [None] * len(environments)


class Recorder(CreditGRPOTrainer):
    """Keeps the batches that TRL's loss is given."""

    batches: list

    def _compute_loss(self, model, inputs):
        self.batches.append(inputs)
        return super()._compute_loss(model, inputs)


def train(folder, stack, rewards=(log_turns,), **settings):
    """A trainer after three steps on episodes of up to four turns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        multi = {"max_completion_length": 140, "max_tool_calling_iterations": 3, "max_steps": 3, "temperature": 0.7}
        trainer = Recorder(
            model=AutoModelForCausalLM.from_pretrained(PATH, dtype=torch.float32),
            reward_funcs=list(rewards),
            args=trl.GRPOConfig(**SETTINGS | multi | {"output_dir": str(folder), **settings}),
            train_dataset=SUMS,
            processing_class=TOKENIZER,
            environment_factory=Sums,
            stack=stack,
        )
        trainer.batches = []
        trainer.train()
    return trainer


def list_turn_credit(batch):
    """The credit of every turn of a batch of TRL's; all its tokens have it, and nobody else has any."""
    mask = (batch["completion_mask"] * batch["tool_mask"]).bool()
    turn, credit = number_turns(mask), batch["advantages"]
    assert mask.any()
    assert not credit[~mask].any()
    assert (batch["tool_mask"] == 0).any()
    rows = []
    for row in range(len(credit)):
        values = [credit[row][turn[row] == number].unique() for number in range(int(count_turns(turn)[row]))]
        assert all(len(value) == 1 for value in values)
        rows.append([value.item() for value in values])
    return rows


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trainer with credit for turns, whose environment gives rewards of turns."""
    return train(tmp_path_factory.mktemp("turns"), [TurnReturns()])


def test_credit_is_one_number_a_turn_differs_between_turns_and_leaves_tools_alone(trained):
    credit = [values for batch in trained.batches for values in list_turn_credit(batch)]
    assert len({len(values) for values in credit} - {1}) > 1
    assert sum(len(set(values)) > 1 for values in credit) >= 6
    assert all(norm > 0 for norm in norms(trained))


def test_the_last_batch_has_what_the_environment_gave_and_the_credit_of_our_own_stack(trained):
    batch = trained.stack.rollout
    counts = count_turns(batch.turn).tolist()
    for row, count in enumerate(counts):
        earned = trained.environments[row].rewards
        assert batch.turn_rewards[row, :count].tolist() == [*earned, 0.0][:count]
        assert batch.rewards[row] == sum(earned)
        assert not batch.turn_rewards[row, count:].any()
    own = CreditStack([TurnReturns()]).assign(batch)
    assert torch.equal(own.advantages, batch.advantages)
    said = "".join(batch.tokens[0])
    assert "wrong" in said or "right" in said


def test_one_reward_an_episode_is_that_of_the_last_turn(tmp_path):
    """Credit for what follows is then RLOO's, and with a discount of one half less for every turn before the last."""
    flat = train(tmp_path, [RLOO()], rewards=(), max_steps=1)
    whole = train(tmp_path, [TurnReturns()], rewards=(), max_steps=1)
    torch.testing.assert_close(whole.batches[0]["advantages"], flat.batches[0]["advantages"])
    rewards, turn = whole.stack.rollout.rewards, whole.stack.rollout.turn
    last = (count_turns(turn) - 1)[:, None]
    torch.testing.assert_close(whole.stack.rollout.turn_rewards.gather(1, last)[:, 0], rewards)
    assert whole.stack.rollout.turn_rewards.sum() == rewards.sum() > 0
    credit = list_turn_credit(train(tmp_path, [TurnReturns(gamma=0.5)], rewards=(), max_steps=1).batches[0])
    assert any(len(set(values)) > 1 for values in credit)


def test_turns_of_a_group_that_hear_the_same_act_on_the_same_state(tmp_path):
    batch = train(tmp_path, [GiGPO()], max_steps=1).stack.rollout
    first, later = batch.states[:4, 0], batch.states[:4, 1:]
    assert len(set(first.tolist())) == 1
    assert {*later[later >= 0].tolist()} & {*batch.states[4:, 1:].tolist()[0]}
    assert len({*later[later >= 0].tolist()}) == 2  # "right" and "wrong"


def test_lists_for_other_turns_than_a_completion_has_are_refused(tmp_path):
    def give(environments, log_extra, **_):
        log_extra("turn_rewards", [[0.0] * 9 for _ in environments])
        return [0.0] * len(environments)

    with pytest.raises(StackError, match=r"turn_rewards has 9 values in row 0, expected \d: one for each turn"):
        train(tmp_path, [TurnReturns()], rewards=(give,), max_steps=1)
