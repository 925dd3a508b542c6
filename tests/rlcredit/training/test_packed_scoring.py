"""An update without padding is the update that it was: whole runs, losses in parts, and what operators add."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import rlcredit.losses
from callbacks.episode.grpo import GRPO
from rlcredit.losses import EntropyBonus, ImportanceSampling, KLPenalty, PolicyLoss
from rlcredit.policy.packed_forward import PackedForward
from rlcredit.training.nan_and_mismatch import trainable_weights
from tests.rlcredit.training.test_scoring import (
    test_a_completion_whose_only_credit_is_an_alternative_is_scored as check_alternatives,
)
from tests.rlcredit.training.test_scoring import (
    test_a_minibatch_without_continuations_is_one as check_minibatches,
)
from tests.rlcredit.training.test_scoring import (
    test_continuations_are_scored_even_if_no_completion_has_credit as check_continuations,
)
from tests.rlcredit.training.test_scoring import (
    test_credit_of_alternatives_and_continuations_has_the_gradient_of_whole_logits as check_credit,
)
from tests.training_runs import assert_like_adapter

LOSSES = [getattr(rlcredit.losses, name) for name in rlcredit.losses.__all__]
LOSSES = [loss for loss in LOSSES if isinstance(loss, type) and issubclass(loss, PolicyLoss) and loss is not PolicyLoss]


@pytest.fixture
def packs(monkeypatch):
    """Read the embedded policy without padding, as an accelerator does; return the tokens of each pass."""
    monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 0)
    read, tokens = PackedForward.read_rows, []

    def watch(self, *arguments, **options):
        states, layout = read(self, *arguments, **options)
        if torch.is_grad_enabled():
            tokens.append(len(layout.ids))
        return states, layout

    monkeypatch.setattr(PackedForward, "read_rows", watch)
    return tokens


@pytest.mark.parametrize("tokens", ["auto", 200])
def test_a_run_is_what_it_is_with_padding(tokens, fit, packs, monkeypatch):
    packed = fit(steps=3, completions=4, micro_batch_tokens=tokens)
    assert (len(packs) > 3) == (tokens == 200)
    monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 2**15)
    plain = fit(steps=3, completions=4)
    assert packed.losses == pytest.approx(plain.losses, abs=1e-6)
    assert_like_adapter(packed.adapter, plain.adapter)


@pytest.mark.parametrize(
    "case", [(120, {"denominator": "sequence"}, ImportanceSampling), ("auto", {}, ImportanceSampling)]
)
def test_alternatives_and_continuations_have_the_gradient_of_whole_logits(fit, case, packs):
    check_credit(fit, case)
    assert packs


def test_what_operators_add_is_scored(fit, packs):
    check_alternatives(fit)
    check_continuations(fit, 80)
    check_minibatches(fit)
    assert packs


@pytest.mark.parametrize("loss", [EntropyBonus, KLPenalty])
@pytest.mark.parametrize("packed", [True, False])
def test_terms_of_a_loss_are_differentiated_in_parts(loss, packed, fit, packs, monkeypatch):
    if not packed:
        monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 2**15)
    whole, cut = (fit(steps=2, loss=loss(beta=0.3), micro_batch_tokens=size) for size in ("auto", 100))
    assert cut.losses == pytest.approx(whole.losses, abs=1e-6)
    assert_like_adapter(cut.adapter, whole.adapter)


def is_gradient_of_rows_their_own(kind):
    """Whether the gradient in some rows stays as it is, bit for bit, where scores of other rows change."""
    noise = torch.Generator().manual_seed(0)
    mask = torch.arange(128) < torch.randint(32, 129, (256, 1), generator=noise)
    old = -2 * torch.rand(mask.shape, generator=noise)
    logprobs, own = old + 0.3 * torch.randn(mask.shape, generator=noise), torch.arange(40, 90)
    advantages = torch.randn(len(mask), 1, generator=noise).expand(mask.shape)
    entropy = torch.rand(mask.shape, generator=noise)
    loss = kind() if kind not in (EntropyBonus, KLPenalty) else kind(ImportanceSampling())
    facts = {
        **{"entropy": entropy, "entropy_graph": entropy, "old_entropy": torch.rand(mask.shape, generator=noise)},
        **{
            "ref_logprobs": old - 0.1,
            "update": 1,
            "token_uniforms": torch.rand(mask.shape, generator=noise, dtype=torch.float64),
        },
    }

    def differentiate(others):
        values = others.clone()
        values[own] = logprobs[own]
        leaf, changed = values.requires_grad_(), {name: facts[name] for name in loss.needs}
        for name in {"entropy", "entropy_graph"} & loss.needs:
            changed[name] = torch.where(torch.isin(torch.arange(len(mask)), own)[:, None], entropy, others.abs())
        return torch.autograd.grad(loss(leaf, old, advantages, mask, **changed), leaf)[0][own]

    return torch.equal(differentiate(logprobs), differentiate(old))


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
def test_losses_that_say_so_have_gradients_of_rows_alone(kind):
    says_so = kind.row_wise if kind not in (EntropyBonus, KLPenalty) else kind(ImportanceSampling()).row_wise
    assert not says_so or is_gradient_of_rows_their_own(kind)


@pytest.mark.parametrize("name", ["ClipCov", "KLCov"])
def test_losses_that_choose_tokens_of_the_whole_batch_do_not_say_so(name):
    assert not getattr(rlcredit.losses, name).row_wise
    assert not is_gradient_of_rows_their_own(getattr(rlcredit.losses, name))


def test_a_loss_of_ones_own_says_so_itself():
    class Mine(rlcredit.losses.ClippedSurrogate):
        """A loss that may compare completions."""

    assert not Mine().row_wise
    assert not KLPenalty(Mine()).row_wise


class WaitCounter(TorchDispatchMode):
    """Count the operations whose result an accelerator's host would wait for."""

    WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "item", "bincount", "equal")

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.__name__.partition(".")[0]
        indices = arguments[1] if name in ("index", "index_put", "index_put_") else ()
        if name in self.WAITS or any(index is not None and index.dtype == torch.bool for index in indices):
            self.names.append(name)
        return function(*arguments, **(options or {}))


def test_between_the_plan_and_the_gradients_nobody_waits_for_the_device(fit, packs):
    module = fit(steps=1, stack=[GRPO()], completions=4).module
    policy, scorer, waits = module.policy, module.scorer, WaitCounter()
    packed = policy.packed_passes[policy.device, policy.computing_dtype, False]
    mask = torch.arange(14) < torch.tensor([9, 4, 7, 7])[:, None]
    ids = torch.randint(3, 99, (4, 30), generator=torch.Generator().manual_seed(0))
    from rlcredit.policy import packed_forward

    layout = packed_forward.lay_out_rows(ids[:, :16], ids[:, 16:], mask, is_padded=True)
    patch = pytest.MonkeyPatch()
    patch.setattr(packed_forward, "lay_out_rows", lambda *_, **__: layout)  # the host does it beside the device
    with patch.context() as _, waits:
        states, _ = packed.read_rows(ids[:, :16], ids[:, 16:], mask, 1)
        scores = policy.score_states(states, layout.targets, scorer.temperature)
        torch.autograd.grad(scores.logprobs.sum(), list(trainable_weights(module).values()))
    patch.undo()
    assert waits.names == []
