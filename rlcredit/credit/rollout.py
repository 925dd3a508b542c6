"""The one data type: what was sampled (facts) and what credit it deserves (the ledger).

Shapes: P prompts, G completions each, B = P * G rows, L prompt tokens, T completion tokens, K turns. Log-quantities in
nats.

"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.alternatives import Alternatives, Credit, WeightedTokens
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.rollout_file import UNSAVED_FIELDS, read_rollout_file, write_rollout_file
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.formulas.groups import leave_one_out_means
from rlcredit.formulas.turns import count_turns, find_read_lengths, number_turns
from rlcredit.formulas.uncertainty import surprisal
from rlcredit.pages.notebook_views import mark_turn_blocks, render_credit_rows
from rlcredit.pages.turn_blocks import TurnBlock, list_turn_blocks

Decode = Callable[[list[int]], Sequence[str]]
"""Return the text of each token of a completion."""


class ValueOracle(Protocol):
    """Estimates what prefixes of completions are worth, and counts the tokens decoded for it."""

    decoded: int

    def outcomes(self, rollout: "Rollout", rows: Sequence[int], starts: Tensor, samples: int) -> Tensor:
        """Return the verdicts of continuations; see :meth:`rlcredit.oracle.Oracle.outcomes`."""
        ...

    def continue_prefixes(
        self, rollout: "Rollout", rows: Tensor, places: Tensor, samples: int
    ) -> tuple[Continuations, Tensor]:
        """Return continuations and their verdicts; see :meth:`rlcredit.oracle.Oracle.continue_prefixes`."""
        ...

    def with_own_cache(self) -> "ValueOracle":
        """Return an oracle that decodes the same continuations and shares none; see :class:`rlcredit.oracle.Oracle`."""
        ...


class Lookahead(Protocol):
    """Reads a rollout again with the policy that sampled it, and what was not sampled; nothing is decoded.

    See :class:`rlcredit.training.lookahead.PolicyLookahead`.
    """

    @property
    def hidden_size(self) -> int:
        """Width D of the policy's hidden states."""
        ...

    def decode_tokens(self, token_ids: Tensor) -> list[str]:
        """Return the text of each token."""
        ...

    def read_alternatives(self, rollout: "Rollout", smallest: float, most: int) -> Alternatives:
        """Return likely tokens that were not sampled, and the states behind them."""
        ...

    def list_answers(self, rollout: "Rollout") -> list[tuple[str, ...]]:
        """Return the accepted answers of each prompt."""
        ...

    def read_answers(self, rollout: "Rollout", starts: Tensor, closing: str) -> Tensor:
        """Return the mean log-probability of the reference answer behind some prefixes, ``(B, T)``."""
        ...

    def score_with_hint(self, rollout: "Rollout", row_mask: Tensor, hint: str) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies, ``(B, T)``, as if the prompt had ended with a hint."""
        ...

    def create_adapter(self, noise: torch.Generator) -> list[Tensor]:
        """Return the factors of a fresh adapter."""
        ...

    def iterate_states(self, rollout: "Rollout", factors: Sequence[Tensor]) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield rows and predicting states under another adapter."""
        ...

    def score_tokens(self, rollout: "Rollout", rows: Tensor, states: Tensor) -> Tensor:
        """Return the log-probability of sampled tokens from the states that predict them."""
        ...


class ValueFunction(Protocol):
    """Estimates what prefixes of completions are worth, from their last hidden states and surprisals."""

    def estimate(self, rollout: "Rollout", rows: Tensor, hidden: Tensor, path: Tensor) -> Tensor:
        """Return the expected reward behind some prefixes, shape ``(N,)`` float32.

        Args:
            rollout: Rollout that the prefixes belong to, or branch off from.
            rows: Row of each prefix, shape ``(N,)``.
            hidden: Last hidden state of each prefix, shape ``(N, D)``.
            path: Statistics of each prefix; see :func:`rlcredit.formulas.prefix_statistics.prefix_statistics`.

        """
        ...


@dataclass(repr=False)
class Rollout:
    """Sampled completions with their rewards, and the ledger that the credit stack edits.

    Operators rebind ledger fields (``rollout.signal = ...``) and never mutate a tensor: a probe higher in the stack may
    still hold the old one. A fresh ledger is neutral, so that the empty stack is REINFORCE. A neutral value is made
    anew whenever a field that it is made of is rebound, until somebody writes it: advantages follow shaped rewards.

    A completion without a verdict counts as if it had not been sampled: statistics are taken over ``counted`` tokens
    and over ``judged_rewards`` or ``verdicts``, and the loss leaves its row out.

    A row is an episode: turns of the policy, and between them what an environment has said, whose tokens are read and
    neither sampled nor credited. A completion that nothing answers is the episode of one turn.

    Attributes:
        step: Optimizer steps taken when sampled; schedules are functions of it.
        group_size: Completions per prompt G; rows ``p * G ... (p + 1) * G - 1`` share a prompt.
        prompt_ids: Token ids of the prompts, -1 on the left of shorter ones, ``(B, L)`` int64.
        completion_ids: Token ids of the completions, right-padded, ``(B, T)`` int64, with what an environment says
            between turns; only ``mask``, no token id, tells sampled tokens from these and from padding.
        mask: True on sampled tokens, end-of-sequence included, ``(B, T)`` bool. Behind the last of a row is padding.
        old_logprobs: Log pi_old of the sampled token under the sampling distribution, ``(B, T)`` float32.
        entropy: Shannon entropy of that distribution over the whole vocabulary, ``(B, T)`` float32.
        correct: Verdict of the verifier, 1 for right and 0 for wrong, ``(B,)`` float32; where there is none, the mean
            of its group.
        task_rewards: Rewards as the task gives them, any real numbers, ``(B,)`` float32; where there is no verdict, the
            mean of the group. None where the verdicts are the rewards.
        tokens: Decoded pieces, B lists of T strings or fewer; joining those of sampled tokens gives the text of a row.
        ref_logprobs: Log pi_ref of the sampled token, adapter off, ``(B, T)`` float32; None unless something reads it.
        ref_log_ratio: Log pi_old - log pi_ref of the sampled token, ``(B, T)`` float32, both scored by one computation:
            zero where the adapter changes nothing. ``old_logprobs`` come from the decoder, and their distance from
            ``ref_logprobs`` holds its rounding. None unless something reads it.
        sum_pi_squared: Sum of the squared probabilities of the sampling distribution, ``(B, T)`` float32; None from an
            engine that cannot tell.
        engine_logprobs: Log-probability of the sampled token as an engine other than the trainer reported it, ``(B,
            T)`` float32; None if the trainer decodes. ``old_logprobs`` are the trainer's in any case.
        oracle: Estimates of what prefixes are worth, made before the first update; None unless something reads it.
        hidden: Last hidden state from which each sampled token was predicted, ``(B, T, D)``, without graph; None unless
            something reads it.
        lookahead: Reader of what unsampled tokens lead to; None unless something reads it.
        turn: Number of the turn of each sampled token, -1 elsewhere, ``(B, T)`` int64; if not given, each
            stretch of sampled tokens is a turn.
        turn_rewards: Reward after each turn, zero behind the last, ``(B, K)`` float32; if not given, the reward where
            every row is one turn, and None elsewhere.
        states: Hash of the observation that each turn acts on, -1 behind the last, ``(B, K)`` int64; if not given, the
            number of the prompt where every row is one turn, and None elsewhere.
        judged: False where the verifier could not tell, ``(B,)`` bool; true everywhere if not given.
        rewards: Rewards from which credit is made, ``(B,)`` float32; neutral: those of the task, else the verdict.
        signal: Uncertainty, ``(B, T)`` float32; neutral: surprisal.
        plan_mask: True on planning tokens, ``(B, T)`` bool; neutral: nowhere.
        sepa_lambda: Pooling strength in [0, 1]; neutral: 0.
        process: Implicit process signal, ``(B, T)`` float32; neutral: 0.
        progress: How far the completion has come, in (0, 1], ``(B, T)`` float32; neutral: t / length, t from one.
        returns: What critics learn: the reward to expect after the prefix before each token, ``(B, T)`` float32;
            neutral: the reward.
        values: Expected reward of the prefix before each token, ``(B, T)`` float32; neutral: the mean reward of the
            group's other completions.
        critic: Function that estimates such values of other prefixes; neutral: None.
        critic_weight: Share of credit that is taken from values, in [0, 1]; neutral: 1.
        advantages: Credit, ``(B, T)`` float32; neutral: the reward on every token, zero without a verdict.
        alternatives: Credit of tokens that were not sampled; neutral: None, there is none.
        continuations: Continuations that are trained on, with their credit; neutral: None, there are none.
        logprobs: Log pi of the sampled token with graph, ``(B, T)``; set by the training step in the mini-batch that it
            uses, ``old_logprobs`` before.
        update: Number of the next update on this rollout, from zero; credit is assigned before the first.
        sources: Number and example of each group's prompt, for oracles and probes that sample it again.
        trail: Label of each operator that wrote advantages, and the advantages after it.
        truth: True credit of some completions, as a probe has measured it.
        token_counts: Tokens that this rollout and its updates cost, not yet added to the run's.
        unwritten: Fields of the ledger that are still neutral.

    """

    step: int
    group_size: int
    prompt_ids: Tensor
    completion_ids: Tensor
    mask: Tensor
    old_logprobs: Tensor
    entropy: Tensor
    correct: Tensor
    tokens: list[list[str]]
    ref_logprobs: Tensor = None  # pyright: ignore[reportAssignmentType]
    ref_log_ratio: Tensor = None  # pyright: ignore[reportAssignmentType]
    sum_pi_squared: Tensor = None  # pyright: ignore[reportAssignmentType]
    engine_logprobs: Tensor = None  # pyright: ignore[reportAssignmentType]
    judged: Tensor = None  # pyright: ignore[reportAssignmentType]
    task_rewards: Tensor = None  # pyright: ignore[reportAssignmentType]
    oracle: ValueOracle = None  # pyright: ignore[reportAssignmentType]
    hidden: Tensor = None  # pyright: ignore[reportAssignmentType]
    lookahead: Lookahead = None  # pyright: ignore[reportAssignmentType]
    turn: Tensor = None  # pyright: ignore[reportAssignmentType]
    turn_rewards: Tensor = None  # pyright: ignore[reportAssignmentType]
    states: Tensor = None  # pyright: ignore[reportAssignmentType]
    rewards: Tensor = field(init=False)
    signal: Tensor = field(init=False)
    plan_mask: Tensor = field(init=False)
    sepa_lambda: float = field(init=False)
    process: Tensor = field(init=False)
    progress: Tensor = field(init=False)
    returns: Tensor = field(init=False)
    values: Tensor = field(init=False)
    critic: ValueFunction | None = field(init=False)
    critic_weight: float = field(init=False)
    advantages: Tensor = field(init=False)
    alternatives: WeightedTokens | None = field(init=False)
    continuations: Continuations | None = field(init=False)
    logprobs: Tensor = field(init=False)
    update: int = field(init=False, default=0)
    sources: tuple[tuple[int, Any], ...] = field(init=False, default=())
    trail: tuple[tuple[str, Tensor], ...] = field(init=False, default=())
    truth: Any = field(init=False, default=None)
    token_counts: TokenCounts = field(init=False, default_factory=TokenCounts)
    unwritten: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        """Initialise a neutral ledger.

        Raises:
            ValueError: a field is not of the shape that the mask and the group size give it.

        """
        _refuse_wrong_shapes(self)
        if self.judged is None:
            self.judged = torch.ones_like(self.correct, dtype=torch.bool)
        self._fill_turns()
        self._open()

    def _fill_turns(self) -> None:
        """Number the turns; where each row is one, its reward is that of its turn."""
        if self.turn is None:
            self.turn = number_turns(self.mask)
        if (self.turn_rewards is not None and self.states is not None) or count_turns(self.turn).gt(1).any():
            return
        if self.turn_rewards is None:
            self.turn_rewards = unshaped_rewards(self)[:, None]
        if self.states is None:
            self.states = (torch.arange(len(self.mask), device=self.mask.device) // self.group_size)[:, None]

    def _open(self) -> None:
        """Make the whole ledger neutral."""
        for name, neutral in NEUTRAL_VALUES.items():
            setattr(self, name, neutral(self))
        vars(self)["unwritten"] = frozenset(NEUTRAL_VALUES)

    def __setattr__(self, name: str, value: Any) -> None:
        """Bind a field and recompute neutral fields made from it, unless it is set to None."""
        bind = super().__setattr__
        bind(name, value)
        bind("unwritten", self.unwritten - {name})
        for product in MADE_OF.get(name, ()) if value is not None else ():
            if product in self.unwritten:
                bind(product, NEUTRAL_VALUES[product](self))

    def __repr__(self) -> str:
        """Return sizes and rewards in a line, where the fields would fill pages."""
        rows, tokens, mean = len(self.mask), int(self.mask.sum()), float(self.rewards.float().mean())
        return (
            f"Rollout(step={self.step}: {rows} completions of {rows // self.group_size} prompts, {tokens:,} tokens, "
            f"mean reward {mean:.3f})"
        )

    def make_neutral(self, name: str) -> None:
        """Give a field of the ledger its neutral value, as if nobody had written it."""
        if name not in self.unwritten:
            vars(self)[name] = NEUTRAL_VALUES[name](self)
            vars(self)["unwritten"] = self.unwritten | {name}

    @property
    def credit(self) -> Credit:
        """Credit as the ledger holds it."""
        return Credit(self.advantages, self.alternatives, self.continuations)

    def credited_rows(self) -> Tensor:
        """Return the rows on which some sampled token has an advantage, shape ``(B,)`` bool."""
        return Credit(self.advantages).credited_rows(self.mask)

    @property
    def verdicts(self) -> Tensor:
        """One for right, zero for wrong, NaN where the verifier could not tell, shape ``(B,)``."""
        return self.correct.where(self.judged, torch.nan)

    @property
    def given_rewards(self) -> Tensor:
        """Rewards before any operator has shaped them, NaN where the verifier could not tell, shape ``(B,)``."""
        return unshaped_rewards(self).where(self.judged, torch.nan)

    @property
    def judged_rewards(self) -> Tensor:
        """Rewards, NaN where the verifier could not tell, shape ``(B,)``."""
        return self.rewards.where(self.judged, torch.nan)

    @property
    def judged_mask(self) -> Tensor:
        """True on the sampled tokens of judged completions, which statistics are taken over, shape ``(B, T)`` bool."""
        return self.mask & self.judged[:, None]

    def _repr_html_(self) -> str:
        """Return some completions, coloured by their credit, for a notebook."""
        completions, group = self.mask.shape[0], self.group_size
        title = f"Rollout at step {self.step}: {completions // group} prompts x {group} completions"
        parts = []
        for row in self.evenly_spaced_rows(SHOWN_ROWS):
            credit = self.advantages[row][self.mask[row]].tolist()
            label = f"prompt {row // group}: {self._describe_outcome(row)}"
            tokens = list(zip(self.list_texts(row), credit, strict=False))
            parts.append((label, mark_turn_blocks(tokens, self.list_blocks(row))))
        return render_credit_rows(
            title, parts, "Green: more likely. Red: less likely. Point at a token for its number."
        )

    def _describe_outcome(self, row: int) -> str:
        """Return the verdict on a completion, or its reward where rewards are no verdicts."""
        reward = self.given_rewards[row].item()
        if not self.judged[row]:
            return "unjudged"
        return {0.0: "wrong", 1.0: "right"}.get(reward, f"reward {reward:.3g}")

    def list_texts(self, row: int, decode: Decode | None = None) -> list[str]:
        """Return the texts of the sampled tokens of a row; where nobody gave any, decoded ones, or token ids.

        Args:
            row: Number of the row.
            decode: Function from token ids to the text of each, None if nobody has one.

        """
        return list(compress(self.list_read_texts(row, decode), self.mask[row].tolist()))

    def list_blocks(self, row: int, decode: Decode | None = None) -> list[TurnBlock]:
        """Return the turns of an episode; none where no row has several. Arguments as for :meth:`list_texts`."""
        if not count_turns(self.turn).gt(1).any():
            return []
        rewards = [] if self.turn_rewards is None else self.turn_rewards[row].tolist()
        return list_turn_blocks(self.turn[row].tolist(), self.list_read_texts(row, decode), rewards)

    def list_read_texts(self, row: int, decode: Decode | None) -> list[str]:
        """Return the texts of a row up to its last sampled token, with what an environment has said."""
        ids = self.completion_ids[row][: int(find_read_lengths(self.mask[row]))].tolist()
        if self.tokens[row] or not ids:
            return self.tokens[row]
        return [f"{token} " for token in ids] if decode is None or min(ids) < 0 else list(decode(ids))

    def has_fact(self, name: str) -> bool:
        """True if a fact is known; one that may not be None is zero, or empty, everywhere where it is not.

        Token ids that are not known are minus one.
        """
        value = getattr(self, name)
        if name == "completion_ids":
            return not (value[self.mask] < 0).any()
        if name in ("old_logprobs", "entropy"):
            return bool(value[self.mask].any())
        if name in ("tokens", "prompt_ids"):
            return any(map(len, value))
        return value is not None

    def evenly_spaced_rows(self, number: int) -> list[int]:
        """Return ``number`` rows at equal distances, the first and the last among them; all if there are no more."""
        return evenly_spaced_rows(len(self.mask), number)

    def select_rows(self, row_numbers: Tensor) -> "Rollout":
        """Return the rollout of some rows, in the order given, with facts and ledger as they are.

        Args:
            row_numbers: Numbers of whole groups of rows, shape ``(N,)``.

        """
        part = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                vars(part)[name] = value[row_numbers]
        credit = Credit(*(vars(self)[name] for name in Credit._fields))
        vars(part).update(credit.select_rows(row_numbers)._asdict())
        part.tokens = [self.tokens[row] for row in row_numbers.tolist()]
        if self.sources:
            part.sources = tuple(
                self.sources[row // self.group_size] for row in row_numbers.tolist()[:: self.group_size]
            )
        part.trail = tuple((label, advantages[row_numbers]) for label, advantages in self.trail)
        return part

    def save(self, file: str | Path) -> None:
        """Write the facts, the fields that operators have written, and the credit after each operator.

        Args:
            file: File in the format of safetensors; it is replaced. Fields that need the policy are left out.

        """
        names = (FACT_FIELDS | (NEUTRAL_VALUES.keys() - self.unwritten)) - UNSAVED_FIELDS
        write_rollout_file(file, {name: getattr(self, name) for name in sorted(names)}, self.trail)

    @staticmethod
    def load(file: str | Path) -> "Rollout":
        """Return a rollout that was saved, on the CPU.

        Raises:
            ValueError: the file is no rollout.

        """
        fields, trail = read_rollout_file(file)
        if strangers := sorted(fields.keys() - FACT_FIELDS - NEUTRAL_VALUES.keys()):
            raise ValueError(f"{file} holds {strangers[0]}, which no rollout has. It was written by another version.")
        rollout = Rollout(**{name: value for name, value in fields.items() if name in FACT_FIELDS})
        for name in NEUTRAL_VALUES:  # in the order in which they are made of each other
            if name in fields:
                setattr(rollout, name, fields[name])
        rollout.trail = trail
        return rollout

    def copy_with_neutral_ledger(self) -> "Rollout":
        """Return the same facts with a neutral ledger; its tokens are counted apart."""
        fresh = copy.copy(self)
        fresh.token_counts = TokenCounts()
        fresh.trail = ()
        fresh._open()
        return fresh

    def select_minibatch(self, number: int, total: int) -> "Rollout":
        """Return one of several mini-batches of prompts, in order; the rollout itself if there is only one."""
        if total == 1:
            return self
        return self.select_rows(torch.arange(len(self.mask), device=self.mask.device).chunk(total)[number])


def _find_turn_width(rollout: Rollout) -> int:
    """Return the number of turns K for which rewards or observations are given; 1 without."""
    tables = [values for values in (rollout.turn_rewards, rollout.states) if values is not None and values.ndim]
    return tables[0].shape[-1] if tables else 1


SHOWN_ROWS = 8
"""Completions that a notebook shows of a rollout."""


def _refuse_wrong_shapes(rollout: Rollout) -> None:
    """Check the shapes of what was given; no value of a tensor is read."""
    mask, group_size = rollout.mask, rollout.group_size
    if mask.ndim != 2 or mask.dtype != torch.bool:
        raise ValueError(
            f"Rollout: mask is {mask.dtype} of shape {tuple(mask.shape)}, expected torch.bool of shape (B, T): one row "
            "per completion, one column per token."
        )
    rows, width = mask.shape
    if group_size < 1 or rows % group_size:
        raise ValueError(f"Rollout: group_size is {group_size}, expected a divisor of the {rows} completions.")
    for names, shape, unit in (
        (PER_TOKEN, (rows, width), "token"),
        (("correct", "judged", "task_rewards"), (rows,), "completion"),
        (("prompt_ids",), (rows, rollout.prompt_ids.shape[-1] if rollout.prompt_ids.ndim else 1), "token of a prompt"),
        (("turn_rewards", "states"), (rows, _find_turn_width(rollout)), "turn"),
    ):
        for name in names:
            value = getattr(rollout, name)
            if value is not None and value.shape != shape:
                raise ValueError(
                    f"Rollout: {name} has shape {tuple(value.shape)}, expected {shape}, one value per {unit}; mask "
                    f"has shape {(rows, width)}."
                )
    if rollout.hidden is not None and rollout.hidden.shape[:2] != (rows, width):
        raise ValueError(
            f"Rollout: hidden has shape {tuple(rollout.hidden.shape)}, expected {(rows, width)} and a width, one state "
            "per token."
        )
    longest = max(map(len, rollout.tokens), default=0)
    if len(rollout.tokens) != rows or longest > width:
        raise ValueError(
            f"Rollout: tokens has {len(rollout.tokens)} lists of up to {longest} texts, expected {rows} of at most "
            f"{width}, one text per token."
        )


def evenly_spaced_rows(rows: int, number: int) -> list[int]:
    """Return ``number`` of ``rows`` at equal distances, the first and the last among them; all if there are no more."""
    return torch.linspace(0, rows - 1, min(number, rows)).round().int().tolist()


def concatenate_rollouts(rollouts: Sequence[Rollout]) -> Rollout:
    """Return one rollout of all rows, completions padded to the longest; the ledger is opened anew.

    Args:
        rollouts: Rollouts of one step and one group size, with prompts of one width.

    """
    if len(rollouts) == 1:
        return rollouts[0]
    width = max(rollout.mask.shape[1] for rollout in rollouts)
    wide = ("completion_ids", "mask", "old_logprobs", "entropy", "sum_pi_squared", "engine_logprobs")
    tensors: dict[str, Any] = {
        name: torch.cat([pad(getattr(r, name), (0, width - r.mask.shape[1])) for r in rollouts])
        for name in wide
        if getattr(rollouts[0], name) is not None
    }
    tensors["turn"] = torch.cat([pad(r.turn, (0, width - r.mask.shape[1]), value=-1) for r in rollouts])
    turns = max(1, int(count_turns(tensors["turn"]).max()))
    for name, filler in (("turn_rewards", 0), ("states", -1)):
        if all(getattr(rollout, name) is not None for rollout in rollouts):
            parts = [getattr(rollout, name)[:, :turns] for rollout in rollouts]
            tensors[name] = torch.cat([pad(part, (0, turns - part.shape[1]), value=filler) for part in parts])
    if rollouts[0].task_rewards is not None:
        tensors["task_rewards"] = torch.cat([rollout.task_rewards for rollout in rollouts])
    if rollouts[0].hidden is not None:
        tensors["hidden"] = torch.cat([pad(r.hidden, (0, 0, 0, width - r.mask.shape[1])) for r in rollouts])
    whole = Rollout(
        step=rollouts[0].step,
        group_size=rollouts[0].group_size,
        prompt_ids=torch.cat([rollout.prompt_ids for rollout in rollouts]),
        correct=torch.cat([rollout.correct for rollout in rollouts]),
        judged=torch.cat([rollout.judged for rollout in rollouts]),
        tokens=[pieces for rollout in rollouts for pieces in rollout.tokens],
        **tensors,
    )
    whole.sources = tuple(source for rollout in rollouts for source in rollout.sources)
    return whole


PER_TOKEN = (
    *("completion_ids", "old_logprobs", "entropy"),
    *("ref_logprobs", "ref_log_ratio", "sum_pi_squared", "engine_logprobs"),
    "turn",
)
"""Facts with a value for every token."""

OPTIONAL_FACTS = frozenset(
    [
        *("ref_logprobs", "ref_log_ratio", "sum_pi_squared", "engine_logprobs", "task_rewards"),
        *("oracle", "hidden", "lookahead"),
        *("turn_rewards", "states"),
    ]
)
"""Facts that may be None: ``ref_logprobs`` takes a forward pass of its own and ``ref_log_ratio`` two, not every engine
knows ``sum_pi_squared``, ``engine_logprobs`` exist where the engine is not the trainer, ``task_rewards`` where verdicts
are not the rewards, and ``hidden``, ``oracle`` and ``lookahead`` where something reads them; ``hidden`` comes from the
decoder, or else takes a pass of its own. ``turn_rewards`` and ``states`` are lost where another trainer hands over
episodes without them."""

FACT_FIELDS = OPTIONAL_FACTS | frozenset(
    [
        "step",
        "group_size",
        "prompt_ids",
        "completion_ids",
        "mask",
        "old_logprobs",
        "entropy",
        "correct",
        "judged",
        "tokens",
        "turn",
    ]
)
"""Fields that sampling and verification fix; no operator writes them."""


def unshaped_rewards(rollout: Rollout) -> Tensor:
    """Return the rewards of the task, or the verdicts where these are the rewards, shape ``(B,)`` float32."""
    return rollout.correct if rollout.task_rewards is None else rollout.task_rewards


def positional_progress(mask: Tensor) -> Tensor:
    """Return t / length of each token, t counted from one, shape ``(B, T)`` float32; one outside the mask."""
    place = mask.cumsum(-1) / mask.sum(-1, keepdim=True).clamp(min=1)
    return place.where(mask, 1.0)


NEUTRAL_VALUES: dict[str, Callable[[Rollout], Tensor | float | None]] = {
    "rewards": unshaped_rewards,
    "signal": lambda rollout: surprisal(rollout.old_logprobs),
    "plan_mask": lambda rollout: rollout.mask.new_zeros(rollout.mask.shape),
    "sepa_lambda": lambda _: 0.0,
    "process": lambda rollout: torch.zeros_like(rollout.old_logprobs),
    "progress": lambda rollout: positional_progress(rollout.mask),
    "returns": lambda rollout: rollout.rewards[:, None].expand(rollout.mask.shape),
    "values": lambda rollout: leave_one_out_means(rollout.judged_rewards, rollout.group_size)[:, None].expand(
        rollout.mask.shape
    ),
    "critic": lambda _: None,
    "critic_weight": lambda _: 1.0,
    "advantages": lambda rollout: rollout.rewards.where(rollout.judged, 0)[:, None].expand(rollout.mask.shape),
    "alternatives": lambda _: None,
    "continuations": lambda _: None,
    "logprobs": lambda rollout: rollout.old_logprobs,
}
"""The ledger and its initial values; each is made from facts and from values above it."""

MADE_OF: dict[str, tuple[str, ...]] = {
    "mask": ("plan_mask", "progress", "returns", "values", "advantages"),
    "old_logprobs": ("signal", "process", "logprobs"),
    "correct": ("rewards", "returns", "values", "advantages"),
    "task_rewards": ("rewards", "returns", "values", "advantages"),
    "judged": ("values", "advantages"),
    "rewards": ("returns", "values", "advantages"),
}
"""Neutral fields made from a field, directly or not, in the order in which they are made."""

NOTE_FIELDS = frozenset(["update", "sources", "trail", "truth", "token_counts"])
"""What the run records about a rollout; no operator may name it."""

ROLLOUT_FIELDS = FACT_FIELDS | frozenset(NEUTRAL_VALUES)
"""Everything an operator may name in ``reads``."""

MEANINGFUL_FIELDS = FACT_FIELDS | {"rewards", "signal", "progress", "returns", "advantages", "critic_weight"}
"""Fields worth reading although no operator has written them: facts, verdict, surprisal, position, verdict again (to
learn from, and as credit), and full weight."""

NO_NUMBERS = frozenset(["plan_mask", "critic", "values", "alternatives", "continuations"])
"""Fields that cannot be mixed with what stood before: choices, critics and what they know, and lists of tokens."""
