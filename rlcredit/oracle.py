"""What a prefix is worth, by asking: continue it many times and count how often the answer is right."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.engines.in_process import InProcessEngine
from rlcredit.engines.noise import ORACLE, draws, uniforms
from rlcredit.functional.uncertainty import tempered_logits
from rlcredit.policy import Policy
from rlcredit.rewards import are
from rlcredit.rollout import Rollout
from rlcredit.tasks.base import Task
from rlcredit.verifiers import Verdict

ROWS = 2048
"""Continuations decoded at a time."""

LOGITS = 2**24
"""Numbers in the logits that exist at one time."""

Branch = tuple[int, int]
"""A prefix and a sample: the m-th continuation of that prefix."""


@dataclass
class TrueCredit:
    r"""Monte-Carlo credit of every token of some completions.

    Attributes:
        rows: of the rollout, N of them.
        values: :math:`V_t`, share right among continuations of the first t tokens; at the end the verdict itself,
            shape ``(N, T + 1)`` float64; behind the end the verdict again.
        credit: :math:`A^*_t = V_{t+1} - V_t` on token t, zero outside the mask, shape ``(N, T)`` float64.
        error: its standard error, from differences under common random numbers, shape ``(N, T)`` float64.
        mask: true on sampled tokens, shape ``(N, T)``.

    """

    rows: Sequence[int]
    values: Tensor
    credit: Tensor
    error: Tensor
    mask: Tensor


@dataclass
class Cost:
    """What a question would take.

    Attributes:
        prefixes: to be continued, each as many times as there are samples.
        continuations: of these that leave the completion they belong to, and so must be decoded.
        tokens: decoded at most.

    """

    prefixes: int
    continuations: int
    tokens: int


@dataclass
class Oracle:
    """Ask the policy itself, remembering what was asked.

    Continuation m of every prefix of a prompt draws the m-th noise of that prompt, from the place in the completion on
    (common random numbers). As long as the noise draws the tokens of the completion itself, the continuation *is* the
    completion; it is decoded only from the first token at which it leaves it. Tokens of which the policy was certain
    cost nothing and have a credit of exactly zero, and all effort goes to where the value can move. A prefix is known
    by its tokens: completions that begin alike are asked once.

    Args:
        policy: as it is now; ask a new oracle when it has changed.
        engine: who decodes.
        task: who judges; what cannot be judged counts as wrong.
        temperature: T.
        max_tokens: of a whole completion.
        seed: of the noise.
        step: likewise, optimizer steps taken.
        precision: context in which the policy runs.

    """

    policy: Policy
    engine: InProcessEngine
    task: Task
    temperature: float
    max_tokens: int
    seed: int = 0
    step: int = 0
    precision: Callable[[], AbstractContextManager[None]] = nullcontext
    decoded: int = 0
    _nodes: dict[tuple[int | None, object], int] = field(default_factory=dict)
    _known: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    _drawn: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    _ended: dict[Branch, bool] = field(default_factory=dict)

    def cost(self, rollout: Rollout, rows: Sequence[int], cuts: Tensor, samples: int) -> Cost:
        """Return what :meth:`outcomes` of the same arguments would take."""
        asked, branches = self._missing(rollout, rows, cuts, samples)
        tokens = sum(self.max_tokens - at for _, at in branches.values())
        return Cost(len(asked), len(branches), tokens)

    def outcomes(self, rollout: Rollout, rows: Sequence[int], cuts: Tensor, samples: int) -> Tensor:
        """Return whether each continuation of some prefixes is right.

        Args:
            rollout: with the sources of its prompts.
            rows: which completions, N of them.
            cuts: true at t if the prefix of t tokens is asked about, shape ``(N, T)``; no matter behind the end.
            samples: M, continuations per prefix.

        Returns:
            One or zero, shape ``(N, T + 1, M)`` float64 on the CPU; NaN where nothing was asked, and at the end and
            behind it the verdict.

        """
        asked, branches = self._missing(rollout, rows, cuts, samples)
        ordered = sorted(branches.items(), key=lambda item: (item[1][1], item[0]))
        for start in range(0, len(ordered), ROWS):
            self._decode(rollout, dict(ordered[start : start + ROWS]), samples)
        right = (rollout.correct * rollout.judged).double().cpu()
        for (node, _), (row, leaving) in asked.items():
            path = self._path(rollout, row)
            ends = [self._ended[path[at], m] if at < len(path) else right[row].item() for m, at in enumerate(leaving)]
            self._known[node, samples] = torch.tensor(ends, dtype=torch.float64)
        found = torch.full((len(rows), rollout.mask.shape[1] + 1, samples), torch.nan, dtype=torch.float64)
        for place, row in enumerate(rows):
            path = self._path(rollout, row)
            found[place, len(path) :] = right[row]
            for at in self._asked(cuts[place], path):
                found[place, at] = self._known[path[at], samples]
        return found

    def credit(self, rollout: Rollout, rows: Sequence[int], samples: int) -> TrueCredit:
        """Return the credit of every token of some completions; arguments as of :meth:`outcomes`."""
        mask = rollout.mask[list(rows)].cpu()
        every = self.outcomes(rollout, rows, mask, samples)
        differences = every.diff(dim=1)
        return TrueCredit(
            rows=rows,
            values=every.mean(-1),
            credit=differences.mean(-1).where(mask, 0),
            error=(differences.var(-1, correction=1) / samples).sqrt().where(mask, 0),
            mask=mask,
        )

    @staticmethod
    def _asked(cuts: Tensor, path: list[int]) -> Iterable[int]:
        return cuts[: len(path)].nonzero().squeeze(-1).tolist()

    def _path(self, rollout: Rollout, row: int) -> list[int]:
        """Name each prefix of a completion, the empty one first, the whole one left out."""
        prompt_ids = rollout.prompt_ids[row : row + 1]
        prompt = tuple(prompt_ids[self.policy.prompt_mask(prompt_ids)].tolist())
        path = [self._nodes.setdefault((None, prompt), len(self._nodes))]
        for token in rollout.completion_ids[row][rollout.mask[row]].tolist():
            path.append(self._nodes.setdefault((path[-1], token), len(self._nodes)))
        return path[:-1]

    def _missing(
        self, rollout: Rollout, rows: Sequence[int], cuts: Tensor, samples: int
    ) -> tuple[dict[tuple[int, int], tuple[int, list[int]]], dict[Branch, tuple[int, int]]]:
        """Find prefixes not asked yet, with the places where each continuation leaves, and what must be decoded."""
        asked: dict[tuple[int, int], tuple[int, list[int]]] = {}
        branches: dict[Branch, tuple[int, int]] = {}
        for place, row in enumerate(rows):
            path = self._path(rollout, row)
            keys = [(at, (path[at], samples)) for at in self._asked(cuts[place], path)]
            new = [(at, key) for at, key in keys if key not in self._known and key not in asked]
            if not new:
                continue
            leaving = self._leaving(rollout, row, samples)
            for at, key in new:
                asked[key] = row, leaving[at].tolist()
                for m, leaves in enumerate(asked[key][1]):
                    if leaves < len(path) and (path[leaves], m) not in self._ended:
                        branches.setdefault((path[leaves], m), (row, leaves))
        return asked, branches

    @torch.no_grad()
    def _leaving(self, rollout: Rollout, row: int, samples: int) -> Tensor:
        """Return where each continuation of each prefix first draws another token, shape ``(length, M)``."""
        ids = rollout.completion_ids[row][rollout.mask[row]]
        with self.policy.sampling(), self.precision():
            hidden = self.policy.predicting(rollout.prompt_ids[row : row + 1], ids[None])[0]
        noise = self._noise(rollout, row, samples)[:, : len(ids)].T
        chunk = max(1, LOGITS // len(self.policy.head))
        same = [
            draws(tempered_logits(states, self.policy.head, self.temperature).softmax(-1), tokens, uniform)
            for states, tokens, uniform in zip(hidden.split(chunk), ids.split(chunk), noise.split(chunk), strict=True)
        ]
        places = torch.arange(len(ids))[:, None].expand(-1, samples)
        leaves = places.where(~torch.cat(same).cpu(), len(ids))
        return leaves.flip(0).cummin(0).values.flip(0)

    def _noise(self, rollout: Rollout, row: int, samples: int) -> Tensor:
        """The noise of every continuation of a prompt, shape ``(M, max_tokens)``."""
        number, _ = rollout.sources[row // rollout.group_size]
        if (number, samples) not in self._drawn:
            self._drawn[number, samples] = uniforms(
                self.seed, ORACLE + self.step, [number] * samples, list(range(samples)), self.max_tokens
            )
        return self._drawn[number, samples]

    @torch.no_grad()
    def _decode(self, rollout: Rollout, branches: dict[Branch, tuple[int, int]], samples: int) -> None:
        """Continue some prefixes and remember how each continuation ended."""
        device, pad = rollout.prompt_ids.device, self.policy.tokenizer.pad_token_id
        begun = torch.tensor([at for _, at in branches.values()])
        of = {node: number for number, node in enumerate(dict.fromkeys(node for node, _ in branches))}
        contexts: dict[int, Tensor] = {}
        for (node, _), (row, at) in branches.items():
            prompt_ids = rollout.prompt_ids[row : row + 1]
            prompt = prompt_ids[self.policy.prompt_mask(prompt_ids)]
            contexts.setdefault(node, torch.cat([prompt, rollout.completion_ids[row, :at]]))
        padded = pad_sequence(list(contexts.values()), batch_first=True, padding_value=pad, padding_side="left")
        places = (torch.arange(self.max_tokens - int(begun.min())) + begun[:, None]).clamp(max=self.max_tokens - 1)
        noise = torch.stack([self._noise(rollout, row, samples)[m] for (_, m), (row, _) in branches.items()])
        rows = torch.tensor([of[node] for node, _ in branches], device=device)
        with self.precision():
            found = self.engine.decode(
                self.policy, padded, noise.gather(1, places), rows, self.temperature, self.max_tokens - begun
            )
        self.decoded += int(found.mask.sum())
        texts, examples = [], []
        for continuation, kept, (row, at) in zip(found.completion_ids, found.mask, branches.values(), strict=True):
            texts.append(torch.cat([rollout.completion_ids[row, :at], continuation[kept]]))
            examples.append(rollout.sources[row // rollout.group_size][1])
        whole = pad_sequence(texts, batch_first=True)
        kept = torch.arange(whole.shape[1]) < torch.tensor([len(each) for each in texts])[:, None]
        pieces = self.policy.pieces(whole.cpu(), kept)
        right = are(self.task.judge(["".join(each) for each in pieces], examples), Verdict.RIGHT)
        self._ended.update(zip(branches, right.tolist(), strict=True))
