"""What a prefix is worth, by asking: continue it many times and count how often the answer is right."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.engines.in_process import InProcessEngine
from rlcredit.engines.noise import ORACLE, uniforms
from rlcredit.policy import Policy
from rlcredit.rewards import are
from rlcredit.rollout import Rollout
from rlcredit.tasks.base import Task
from rlcredit.verifiers import Verdict

ROWS = 2048
"""Continuations decoded at a time."""


@dataclass
class TrueCredit:
    r"""Monte-Carlo credit of every token of some completions.

    Attributes:
        values: :math:`V_t`, share right among continuations of the first t tokens; at the end the verdict itself,
            shape ``(N, T + 1)`` float64; behind the end the verdict again.
        credit: :math:`A^*_t = V_{t+1} - V_t` on token t, zero outside the mask, shape ``(N, T)`` float64.
        error: its standard error, from differences under common random numbers, shape ``(N, T)`` float64.
        mask: true on sampled tokens, shape ``(N, T)``.

    """

    values: Tensor
    credit: Tensor
    error: Tensor
    mask: Tensor


@dataclass
class Oracle:
    """Ask the policy itself, remembering what was asked.

    Continuation m of every prefix of a prompt draws the m-th noise of that prompt, from the place in the completion on:
    neighbouring prefixes share it, so that continuations that go the same way differ in nothing, and a difference of
    values is known better than either. A prefix is known by its tokens; completions that begin alike are asked once.

    Args:
        policy: as it is now; ask a new oracle when it has changed.
        engine: who decodes.
        task: who judges.
        temperature: T.
        max_tokens: of a whole completion.
        samples: M, continuations per prefix.
        seed: of the noise.

    """

    policy: Policy
    engine: InProcessEngine
    task: Task
    temperature: float
    max_tokens: int
    samples: int
    seed: int = 0
    known: dict[tuple[int, ...], Tensor] = field(default_factory=dict)
    decoded: int = 0

    def cost(self, rollout: Rollout, rows: Sequence[int]) -> int:
        """Return how many prefixes are to be continued, ``samples`` times each."""
        return len({key for row in rows for key, _ in self._prefixes(rollout, row)} - self.known.keys())

    def credit(self, rollout: Rollout, rows: Sequence[int]) -> TrueCredit:
        """Return the credit of every token of some completions.

        Args:
            rollout: with the sources of its prompts.
            rows: which completions, N of them.

        """
        wanted = {key: (row, at) for row in rows for key, at in self._prefixes(rollout, row) if key not in self.known}
        chunk = max(1, ROWS // self.samples)
        keys = sorted(wanted, key=len)
        for start in range(0, len(keys), chunk):
            self._ask(rollout, {key: wanted[key] for key in keys[start : start + chunk]})
        outcomes, width = [], rollout.mask.shape[1]
        for row in rows:
            each = torch.stack([self.known[key] for key, _ in self._prefixes(rollout, row)])
            verdict = rollout.correct[row].to(each).expand(width + 1 - len(each), self.samples)
            outcomes.append(torch.cat([each, verdict]))
        every, mask = torch.stack(outcomes), rollout.mask[list(rows)].cpu()
        differences = every.diff(dim=1)
        return TrueCredit(
            values=every.mean(-1),
            credit=differences.mean(-1).where(mask, 0),
            error=(differences.var(-1, correction=1) / self.samples).sqrt().where(mask, 0),
            mask=mask,
        )

    def _prefixes(self, rollout: Rollout, row: int) -> list[tuple[tuple[int, ...], int]]:
        """Prompt and first t tokens, for every t before the end, and t."""
        prompt_ids = rollout.prompt_ids[row : row + 1]
        prompt = prompt_ids[self.policy.prompt_mask(prompt_ids)].tolist()
        completion = rollout.completion_ids[row][rollout.mask[row]].tolist()
        return [((*prompt, *completion[:t]), t) for t in range(len(completion))]

    def _ask(self, rollout: Rollout, prefixes: dict[tuple[int, ...], tuple[int, int]]) -> None:
        """Continue some prefixes and remember how each continuation ended."""
        device, pad = self.policy.device, self.policy.tokenizer.pad_token_id
        contexts = pad_sequence(
            [torch.tensor(key) for key in prefixes], batch_first=True, padding_value=pad, padding_side="left"
        )
        sources = [rollout.sources[row // rollout.group_size] for row, _ in prefixes.values()]
        begun = torch.tensor([at for _, at in prefixes.values()]).repeat_interleave(self.samples)
        noise = self._noise([number for number, _ in sources], begun)
        samples = self.engine.decode(
            self.policy, contexts.to(device), noise, self.samples, self.temperature, self.max_tokens - begun
        )
        self.decoded += int(samples.mask.sum())
        right = self._right(rollout, list(prefixes.values()), samples.completion_ids.cpu(), samples.mask.cpu(), sources)
        self.known.update(zip(prefixes, right.double().view(-1, self.samples), strict=True))

    def _noise(self, numbers: list[int], begun: Tensor) -> Tensor:
        """The m-th noise of each prompt, from the place where the continuation begins."""
        drawn = {
            number: uniforms(self.seed, ORACLE, [number] * self.samples, list(range(self.samples)), self.max_tokens)
            for number in set(numbers)
        }
        whole = torch.cat([drawn[number] for number in numbers])
        place = torch.arange(self.max_tokens - int(begun.min())) + begun[:, None]
        return whole.gather(1, place.clamp(max=self.max_tokens - 1))

    def _right(
        self, rollout: Rollout, places: list[tuple[int, int]], ids: Tensor, mask: Tensor, sources: list[tuple[int, Any]]
    ) -> Tensor:
        """Judge prefix and continuation together; what cannot be judged counts as wrong."""
        whole, lengths = [], mask.sum(-1).tolist()
        for number, (row, at) in enumerate(places):
            begun = rollout.completion_ids[row, :at].cpu()
            for m in range(number * self.samples, (number + 1) * self.samples):
                whole.append(torch.cat([begun, ids[m, : lengths[m]]]))
        padded = pad_sequence(whole, batch_first=True)
        kept = torch.arange(padded.shape[1]) < torch.tensor([len(each) for each in whole])[:, None]
        texts = ["".join(pieces) for pieces in self.policy.pieces(padded, kept)]
        examples = [example for _, example in sources for _ in range(self.samples)]
        return are(self.task.judge(texts, examples), Verdict.RIGHT)
