"""A stack of operators that works for another trainer: with its state, its metrics, and what it needs to be told."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlcredit.credit.contract import OperatorContract, StackError
from rlcredit.credit.operator_state import label_operators, move_state, note_credit
from rlcredit.credit.rollout import Decode, Rollout
from rlcredit.credit.stack_checks import check_stack
from rlcredit.formulas.turns import find_read_lengths

if TYPE_CHECKING:
    from rlcredit.credit.operator import CreditOperator

FROM_POLICY = {
    "oracle": "continues completions with the policy",
    "lookahead": "reads tokens with the policy that were not sampled",
    "hidden": "reads hidden states of the policy",
    "engine_logprobs": "compares two engines",
}
"""Facts that only a loop with the policy at hand can give, and what an operator does with them."""

MADE_FROM = {
    "signal": ("old_logprobs",),
    "ref_log_ratio": ("ref_logprobs", "old_logprobs"),
    "tokens": ("completion_ids", "decode"),
}
"""Arguments that other fields are made from, unless an operator above has written these."""

ARGUMENT_DESCRIPTIONS = {
    "completion_ids": "token ids of the completions, shape (B, T)",
    "old_logprobs": "log-probabilities of the sampled tokens, shape (B, T)",
    "entropy": "entropies in nats of the distributions that tokens were drawn from, shape (B, T)",
    "ref_logprobs": "log-probabilities of the sampled tokens under the reference policy, shape (B, T)",
    "sum_pi_squared": "sums of the squared probabilities of all tokens, shape (B, T)",
    "prompt_ids": "token ids of the prompts, shape (B, L)",
    "turn_rewards": "the reward after each turn, shape (B, K), or a list for each completion",
    "states": "a hash of the observation that each turn acts on, shape (B, K), or `completion_ids` to make it from",
    "decode": "a function from a completion's token ids to a list with the text of each, as "
    "rlcredit.policy.pieces.make_piece_decoder(tokenizer) returns",
    "step": "the number of optimizer steps taken so far",
}
"""Arguments that a trainer may leave out, and what they are."""


class BridgedStack:
    """Assign credit to the batches of another trainer, and keep what is to be logged and saved.

    Args:
        operators: Operators, in the order in which they act.
        seed: Seed of operators that draw.

    Attributes:
        metrics: What the operators report of the last batch, by ``credit/<Operator>/<quantity>``.

    Raises:
        StackError: the list is no program, or an operator needs the policy itself.

    Example:
        >>> from callbacks import GRPO, GTPO
        >>> BridgedStack([GRPO(), GTPO()]).list_needs()
        {'old_logprobs': 'GTPO'}

    """

    def __init__(self, operators: Sequence[OperatorContract], seed: int = 0) -> None:
        self.operators = cast("list[CreditOperator]", list(operators))
        self.metrics: dict[str, float] = {}
        self._last: Rollout | None = None
        self._decode: Decode | None = None
        self._watches = True
        label_operators(self.operators, seed)
        for operator in self.operators:
            _refuse_policy_readers(operator)
        check_stack(self.operators)

    @property
    def rollout(self) -> Rollout | None:
        """Last batch with its credit, its rows sorted by group; None before the first.

        If a decoder was given, and no operator has needed it, texts of tokens are decoded when the batch is asked for.
        """
        batch = self._last
        if batch is not None and self._decode is not None and not batch.has_fact("tokens"):
            batch.tokens = _decode_rows(self._decode, batch)
        return batch

    def list_needs(self) -> dict[str, str]:
        """Return the arguments that the operators need, and the first operator that needs each."""
        needs: dict[str, str] = {}
        fields: set[str] = set()
        for operator in self.operators:
            for field in sorted(operator.reads - fields):
                for name in MADE_FROM.get(field, (field,)):
                    if name in ARGUMENT_DESCRIPTIONS:
                        needs.setdefault(name, operator.label)
            fields |= operator.writes
        return needs

    def refuse_missing(self, facts: Mapping[str, object], giver: str, repairs: Mapping[str, str] | None = None) -> None:
        """Refuse to work where an operator needs what is not given.

        Args:
            facts: Arguments by name, None where there is nothing.
            giver: Whoever gives them, for the message.
            repairs: Sentences that say how an argument comes to be given, by its name.

        Raises:
            StackError: with the operator and the argument.

        """
        for name, label in self.list_needs().items():
            if facts.get(name) is None:
                repair = f" {repairs[name]}" if repairs and name in repairs else ""
                raise StackError(
                    f"{label} needs `{name}`, which {giver} does not give: {ARGUMENT_DESCRIPTIONS[name]}.{repair}"
                )

    def assign(self, rollout: Rollout, decode: Decode | None = None) -> Rollout:
        """Return the same facts with the stack's credit; keep them, and the operators' metrics.

        Args:
            rollout: Batch that gets credit.
            decode: Function from token ids to the text of each; it is asked at once if an operator reads texts.

        """
        fresh = rollout.copy_with_neutral_ledger()
        if decode is not None and "decode" in self.list_needs():
            fresh.tokens = _decode_rows(decode, fresh)
        metrics: dict[str, float] = {}
        for operator in self.operators:
            move_state(operator, rollout.mask.device)
            report = operator.assign_checked(fresh, watch=self._watches)
            note_credit(fresh, operator)
            metrics |= {f"credit/{operator.label}/{name}": float(value) for name, value in report.items()}
        self._watches = False
        self.metrics, self._last, self._decode = metrics, fresh, decode
        return fresh

    def copy_for_evaluation(self) -> "BridgedStack":
        """Return a stack with the same state, whose batches do not change this one's."""
        twin = copy.copy(self)  # metrics and the last batch are replaced, never edited
        twin.operators = copy.deepcopy(self.operators)
        return twin

    def state_dict(self) -> dict[str, Any]:
        """Return the state of operators by their labels: tensors, numbers and texts."""
        return copy.deepcopy({label: operator.state_dict() for label, operator in self._find_stateful().items()})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` has returned.

        Raises:
            ValueError: it is the state of other operators.

        """
        operators = self._find_stateful()
        if operators.keys() != state_dict.keys():
            raise ValueError(
                f"this is the state of {', '.join(state_dict) or 'no operator'}, and the stack keeps that of "
                f"{', '.join(operators) or 'none'}. Load it into the stack that it was saved from."
            )
        for label, state in state_dict.items():
            operators[label].load_state_dict(copy.deepcopy(state))

    def _find_stateful(self) -> "dict[str, CreditOperator]":
        return {operator.label: operator for operator in self.operators if operator.state}


def _decode_rows(decode: Decode, rollout: Rollout) -> list[list[str]]:
    """Return the texts of all tokens, and of what an environment has said between them."""
    rows = []
    for ids, length in zip(rollout.completion_ids.tolist(), find_read_lengths(rollout.mask).tolist(), strict=True):
        result = decode(ids[:length])
        texts = list(result)
        if isinstance(result, str) or len(texts) != length:
            amount = "one text" if isinstance(result, str) else f"{len(texts)} texts"
            raise ValueError(
                f"decode returned {amount} for {length} tokens. Return a list with the text of each, or pass "
                "rlcredit.policy.pieces.make_piece_decoder(tokenizer)."
            )
        rows.append(texts)
    return rows


def _refuse_policy_readers(operator: "CreditOperator") -> None:
    """Refuse an operator that needs the policy itself, and one that assigns no credit."""
    if not operator.writes:
        raise StackError(f"{operator.label} measures and assigns no credit. Take it out of this stack.")
    for fact in sorted(operator.reads & FROM_POLICY.keys()):
        raise StackError(
            f"{operator.label} {FROM_POLICY[fact]}, which a batch of tensors cannot give. Train with `rlcredit fit`, "
            "or take it out of this stack."
        )


StackSource = str | Path | Sequence[OperatorContract | str | Mapping[str, Any]] | BridgedStack
"""Whatever :func:`load_stack` makes a stack of."""


def load_stack(source: StackSource, seed: int = 0) -> BridgedStack:
    """Return a stack from operators, from the name of a condition, or from a file in YAML.

    Args:
        source: List of operators, each an instance or written as in ``trainer.callbacks``: ``"GRPO"``,
            ``"GTPO(beta=0.1)"``; or a condition that ships, such as ``sepa_paper/c8_maxrl_sepa``; or a file with a list
            under ``trainer.callbacks``, of which everything else is passed over. A stack comes back as it is.
        seed: Seed of operators that draw.

    Raises:
        FileNotFoundError: there is no such condition or file.
        StackError: the list is no program, or an operator needs the policy itself.
        ValueError: the file holds no list of operators, or an entry of the list names none.

    Example:
        >>> [operator.label for operator in load_stack("sepa_paper/c2_grpo_gtpo").operators]
        ['GRPO', 'GTPO']
        >>> load_stack(["GRPO", "GTPO(beta=0.5)"]).operators[1].beta
        0.5

    """
    if isinstance(source, BridgedStack):
        return source
    if isinstance(source, (str, Path)):
        from rlcredit.bridge.stack_file import read_stack_file  # noqa: PLC0415  (a list of operators needs no parser)

        return BridgedStack(read_stack_file(source), seed)
    if not all(isinstance(entry, OperatorContract) for entry in source):
        from rlcredit.bridge.stack_file import read_operators  # noqa: PLC0415

        source = read_operators(source)
    return BridgedStack(cast("Sequence[OperatorContract]", source), seed)
