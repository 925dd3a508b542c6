"""Classify texts as planning or execution by which of two lists of sentences their embedding is nearer to."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from rlcredit.policy.model_loading import load_sentence_encoder


@dataclass
class PlanningAnchors:
    """Sentences that typify planning, and others that typify execution."""

    planning: Sequence[str]
    execution: Sequence[str]

    @classmethod
    def from_toml(cls, path: Path) -> "PlanningAnchors":
        """Read the lists ``planning`` and ``execution`` of a TOML file.

        Raises:
            ValueError: there is no such file, or a list is missing or empty.

        """
        if not path.is_file():
            raise ValueError(f"There is no file {path} with anchors.")
        try:
            lists = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is no TOML: {error}.") from None
        for name in ("planning", "execution"):
            sentences = lists.get(name)
            if not isinstance(sentences, list) or not sentences or not all(isinstance(s, str) for s in sentences):
                raise ValueError(f"{path} has no list of sentences `{name}`.")
        return cls(lists["planning"], lists["execution"])


@dataclass
class PlanningClassifier:
    """Judge texts to be about planning or not, encoding each distinct text once.

    Args:
        anchors: Two lists of sentences, planning and execution; each is represented by the mean of its embeddings.
        threshold: How far the cosine with planning must exceed that with execution.
        minimum: Value that the cosine with planning must exceed in any case.
        model: Name or path of a sentence-transformers model.
        batch_size: Texts encoded together.
        remembered: Number of texts whose class is kept; the oldest go first.

    """

    anchors: PlanningAnchors
    threshold: float
    minimum: float
    model: str
    batch_size: int = 256
    remembered: int = 200_000
    encoded: int = 0
    _encoder: Any = None
    _verdicts: dict[str, bool] = field(default_factory=dict)

    def classify_texts(self, texts: Iterable[str], device: torch.device) -> list[bool]:
        """Judge texts; those seen before cost nothing."""
        texts = list(texts)
        new = [text for text in dict.fromkeys(texts) if text not in self._verdicts]
        if new:
            self._verdicts.update(zip(new, self._classify_new(new, device), strict=True))
        verdicts = [self._verdicts[text] for text in texts]
        for text in list(islice(self._verdicts, max(0, len(self._verdicts) - self.remembered))):
            del self._verdicts[text]
        return verdicts

    def load_encoder(self, device: torch.device) -> None:
        """Load the encoder and compute the two means, once."""
        if self._encoder is None:
            self._encoder = load_sentence_encoder(self.model, device)
            self._centres = torch.stack(
                [self._embed_texts(sentences).mean(0) for sentences in (self.anchors.planning, self.anchors.execution)]
            )

    def _classify_new(self, texts: list[str], device: torch.device) -> list[bool]:
        self.load_encoder(device)
        self.encoded += len(texts)
        planning, execution = (self._embed_texts(texts) @ normalize(self._centres, dim=-1).T).unbind(-1)
        return ((planning > execution + self.threshold) & (planning > self.minimum)).tolist()

    def _embed_texts(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors, one row per text."""
        return self._encoder.encode(
            list(texts),
            batch_size=self.batch_size,
            convert_to_tensor=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
