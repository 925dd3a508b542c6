"""A warning about a run whose first rollouts earn no reward, and the end of one in which nothing is judged."""

from collections import Counter
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.exit_status import RunStopped
from rlcredit.base.lightning_private import read_datamodule
from rlcredit.base.messages import print_message
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.formulas.groups import mixed_groups
from rlcredit.formulas.turns import find_read_lengths
from rlcredit.training.module import PolicyModule
from rlcredit.verification.verifiers import Verdict

_SAMPLE_SIZE = 64
"""Completions that are judged again, to find what most of them have in common."""

_MAX_TEXT_LENGTH = 700
"""Characters of a text."""

_VERDICT_ADVICE = {
    Verdict.NO_ANSWER: (
        "They state no answer in a known format. Ask for one in data.init_args.instruction, for example "
        "'{question} End with #### and the number.', or name the one they use in data.init_args.answer_formats."
    ),
    Verdict.UNJUDGED: (
        "Nobody could judge them: answers are in a format that data.init_args.answer_formats leaves "
        "out, or the verifier fails."
    ),
    Verdict.WRONG: (
        "They state answers, and those are wrong. If the one above is right, the reference or the verifier is not: see "
        "docs/howto/verifier.md. If not, begin with easier questions, or with more completions of each "
        "(model.sampling.completions)."
    ),
}
_EPISODE_ADVICE = (
    "Begin with easier episodes, or with more of each prompt (model.sampling.completions); `rlcredit try` shows some, "
    "turn by turn."
)
_FAILURE_ADVICE = "A warning above says why their environment failed."
_EQUAL_ADVICE = (
    "If completions should differ in reward, look at the functions in data.init_args.rewards; see "
    "docs/howto/verifier.md."
)
_CUT_ADVICE = "Most were cut off before they ended: raise model.sampling.max_tokens."


class NoReward(Callback):
    """Warn once if none of the first rollouts has earned any reward; stop where rewards have left some unjudged.

    Args:
        rollouts: Number of rollouts in a row; for the warning, from the first step on.

    """

    def __init__(self, rollouts: int = 3) -> None:
        self.rollouts, self.completions, self.unjudged = rollouts, 0, 0
        self.watching = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start counting in a new run; a continued run has been checked before."""
        self.watching = trainer.global_step == 0

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Count rollouts without a reward over all processes; after the update, so that no timing includes it.

        Raises:
            RunStopped: functions of one's own have judged no completion of some rollouts in a row.

        """
        if batch.update:
            return
        if batch.task_rewards is not None:
            self._count_unjudged(batch, read_datamodule(trainer))
        if not self.watching:
            return
        module = cast("PolicyModule", pl_module)
        self.completions += len(batch.mask) * trainer.world_size
        is_last = batch.step >= (self.rollouts - 1) * module.updates_per_rollout
        differ = mixed_groups(batch.given_rewards, batch.group_size)
        has_reward = bool(sum_over_processes((batch.correct if batch.task_rewards is None else differ).sum()) > 0)
        self.watching = not (has_reward or is_last)
        if is_last and not has_reward:
            rank_zero_only(print_message)(self.render_warning(batch, module, read_datamodule(trainer)))

    def _count_unjudged(self, rollout: Rollout, task: Any) -> None:
        self.unjudged = 0 if sum_over_processes(rollout.judged.sum()) > 0 else self.unjudged + 1
        if self.unjudged == self.rollouts:
            judge = "data.init_args.rewards" if task.environment is None else "data.init_args.environment"
            raise RunStopped(
                f"Step {rollout.step}: {judge} left every completion of {self.rollouts} rollouts in a row unjudged, so "
                "nothing is learnt. Look at its functions, which return None, fail, or are too slow; a warning above "
                "may say which."
            )

    def render_warning(self, rollout: Rollout, module: PolicyModule, task: Any) -> str:
        """Return the warning: prompt, completion, reference and verdict of a typical completion, and what to try."""
        rows = range(min(_SAMPLE_SIZE, len(rollout.mask)))
        completions = ["".join(rollout.list_texts(row)) for row in rows]
        examples = [rollout.sources[row // rollout.group_size][1] for row in rows]
        if task.environment is None:
            verdicts = list(task.score(module.policy.prepend_thinking_mark(completions), examples).verdicts)
        else:
            verdicts = [Verdict.WRONG if is_judged else Verdict.UNJUDGED for is_judged in rollout.judged[: len(rows)]]
        kind, _ = Counter(verdicts).most_common(1)[0]
        row = verdicts.index(kind)
        policy = module.policy
        prompt = rollout.prompt_ids[row]
        prompt = prompt[policy.prompt_mask(prompt)]
        cut = (find_read_lengths(rollout.mask[: len(rows)]) >= module.sampling.max_tokens).float().mean() > 0.5
        texts = {
            "prompt": policy.tokenizer.decode(prompt),
            "completion": completions[row],
            "reference": examples[row].reference,
            "verdict": kind.value,
        }
        subject = f"the first {self.completions:,} completions"
        statement = f"none of {subject} has earned a reward"
        advice = _CUT_ADVICE if cut and kind is Verdict.NO_ANSWER else _VERDICT_ADVICE.get(kind, "")
        if rollout.task_rewards is not None:
            texts["reward"] = f"{rollout.given_rewards[row].item():g}, as that of the other completions of its prompt"
            statement = f"{subject} to each prompt have equal rewards"
            advice = _EQUAL_ADVICE
        if task.environment is not None:
            advice = _FAILURE_ADVICE if kind is Verdict.UNJUDGED else _EPISODE_ADVICE
        lines = [f"  {name + ':':<11} {_shorten_text(text)}" for name, text in texts.items()]
        return "\n".join([f"warning: {statement}, so nothing is learnt. One of them:", *lines, advice])


def _shorten_text(text: str) -> str:
    half = _MAX_TEXT_LENGTH // 2
    return repr(text) if len(text) <= _MAX_TEXT_LENGTH else f"{text[:half]!r} ... {text[-half:]!r}"
