"""What the strategy of a base in parts refuses; what it computes is in tests/behaviour/test_two_sharded.py."""

from types import SimpleNamespace

import pytest
from lightning.pytorch.strategies import StrategyRegistry

from callbacks.episode.grpo import GRPO
from callbacks.probes.credit_oracle import CreditOracle
from rlcredit.decoding.engine import Engine
from rlcredit.policy.policy import Policy
from rlcredit.training.module import PolicyModule
from rlcredit.training.setup_checks import refuse_unfit_setup
from rlcredit.training.sharded_base import SHARDED_BASE, ShardedBaseStrategy


class Server(Engine):
    def sample(self, *arguments, **more):
        raise NotImplementedError


def test_it_is_known_by_name():
    assert StrategyRegistry[SHARDED_BASE]["strategy"] is ShardedBaseStrategy
    assert isinstance(StrategyRegistry.get(SHARDED_BASE), ShardedBaseStrategy)


def make_task(size):
    return SimpleNamespace(held_out_sets=[SimpleNamespace(task=SimpleNamespace(held_out_set=range(size)))])


@pytest.mark.parametrize(
    ("arguments", "needs", "callbacks", "sentence"),
    [
        (
            {},
            (),
            [],
            r"sharded_base .* InProcessEngine decodes with all of it\. Set model\.engine: VLLMServer",
        ),
        (
            {"engine": Server(), "policy": Policy(quantization="4bit")},
            (),
            [],
            r"4bit weights are packed .*",
        ),
        ({"engine": Server()}, ("lookahead",), [], r"strategy: sharded_base cannot read what was not sampled"),
        ({"engine": Server()}, (), [GRPO(), CreditOracle()], r"CreditOracle continues partial answers in this process"),
        ({"engine": Server()}, (), [], r"a held-out question in each of 4 processes, and a set has 3\. Raise data\."),
    ],
)
def test_what_would_not_make_the_same_passes_everywhere_is_refused_with_the_repair(
    arguments, needs, callbacks, sentence
):
    module = PolicyModule(**arguments)
    module.needs.update(needs)
    trainer = SimpleNamespace(
        accumulate_grad_batches=1, strategy=ShardedBaseStrategy(), world_size=4, callbacks=callbacks
    )
    with pytest.raises(ValueError, match=sentence):
        refuse_unfit_setup(module, trainer, make_task(3))
