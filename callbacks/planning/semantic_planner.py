"""Semantic planning: a window of text plans if its embedding is near to that of planning sentences."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.planning_classifier import PlanningAnchors, PlanningClassifier
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.spans import Span, plan_coverage, plan_mask_from_spans, turn_texts

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

ANCHOR_SENTENCES = Path(str(files("callbacks"))) / "planning" / "anchors.toml"


def word_windows(text: str, window: int, stride: int) -> list[Span]:
    """Cut a text into overlapping stretches of ``window`` words; the last may be shorter, but not below three.

    Example:
        >>> word_windows("let me think: 4 + 5", window=4, stride=2)
        [(0, 15), (7, 19)]

    """
    words = [match.span() for match in re.finditer(r"\S+", text)]
    starts = range(0, max(1, len(words) - window + stride), stride)
    parts = [words[min(start, max(0, len(words) - 3)) : start + window] for start in starts]
    return [(part[0][0], part[-1][1]) for part in parts if len(part) >= 3]


class SemanticPlanner(CreditOperator, reads="tokens turn", writes="plan_mask", costly=True):
    """Mark the windows of words that lie nearer to sentences of planning than to sentences of execution.

    A window plans if its cosine with the mean planning anchor exceeds both ``minimum`` and, by more than ``threshold``,
    that with the mean execution anchor: the detector of the SEPA paper's follow-ups, with anchors of our own. No
    window is encoded twice. It runs on the device of the rollout.

    Args:
        threshold: How much nearer to planning than to execution a window must be, in cosine similarity.
        minimum: Smallest cosine similarity to planning that a marked window must exceed.
        window: Words per window.
        stride: Words from one window to the next.
        anchors: TOML file with lists of sentences, ``planning`` and ``execution``; those of the package if None.
        model: Name or path of a sentence-transformers model; the extra ``offline`` ships the default.

    """

    def __init__(
        self,
        threshold: float = 0.02,
        minimum: float = 0.25,
        window: int = 12,
        stride: int = 6,
        anchors: str | None = None,
        model: str = "all-MiniLM-L6-v2",
    ) -> None:
        super().__init__()
        if not window >= stride >= 1 or window < 3:
            raise ValueError(f"SemanticPlanner expects window >= stride >= 1 and window >= 3, got {window}, {stride}.")
        self.threshold, self.minimum, self.window, self.stride = threshold, minimum, window, stride
        self.anchors, self.model = anchors, model
        sentences = PlanningAnchors.from_toml(ANCHOR_SENTENCES if anchors is None else Path(anchors))
        self.judge = PlanningClassifier(sentences, threshold, minimum, model)

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Read the encoder before anything is sampled."""
        super().setup(trainer, pl_module, stage)
        if stage == "fit":
            self.judge.load_encoder(pl_module.device)

    def assign(self, rollout: Rollout) -> Metrics:
        """Mark; log the share of tokens marked, of completions that plan at all, and how many windows were new."""
        texts, encoded_count = turn_texts(rollout.tokens, rollout.turn), self.judge.encoded
        planning_spans = self.planning_spans(texts, rollout.mask.device)
        rollout.plan_mask = plan_mask_from_spans(rollout.tokens, planning_spans, rollout.turn)
        return {**plan_coverage(rollout.plan_mask, rollout.mask), "encoded": self.judge.encoded - encoded_count}

    def planning_spans(self, texts: Sequence[str], device: torch.device) -> list[list[Span]]:
        """Return the windows of every text that plan; ``judge.load_encoder`` has read the encoder.

        Args:
            texts: Texts of whole completions.
            device: Device that the encoder runs on.

        """
        windows = [word_windows(text, self.window, self.stride) for text in texts]
        window_texts = [text[start:end] for text, spans in zip(texts, windows, strict=True) for start, end in spans]
        verdicts = iter(self.judge.classify_texts(window_texts, device))
        return [[span for span in spans if next(verdicts)] for spans in windows]
