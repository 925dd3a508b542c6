"""Published data sets of the Hugging Face hub, or local copies of them."""

from pathlib import Path
from typing import Any

from rlcredit.tasks.records import Records


class HubDataset(Records):
    """What published data sets share: held-out questions are their split ``test``.

    Args:
        path: Repository on the hub, or a local folder of the same format.
        name: Configuration inside the repository; of several, questions are taken in turn.
        revision: Commit or tag; pin it for a result that is to be repeated.
        train_split: Name of the training split; if None all questions are held out.
        validation_split: Name of the held-out split; without one, a hash of the text holds out a tenth.
        question: Column of the question.
        answer: Column of the answer.
        kwargs: Arguments of :class:`~rlcredit.tasks.records.Records` and :class:`~rlcredit.tasks.task.Task`.

    """

    is_listed = False

    def __init__(
        self,
        path: str,
        name: str | list[str] | None = None,
        revision: str | None = None,
        train_split: str | None = "train",
        validation_split: str | None = "test",
        question: str = "question",
        answer: str = "answer",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            path,
            name=name,
            revision=revision,
            train_split=train_split,
            validation_split=validation_split,
            question=question,
            answer=answer,
            **kwargs,
        )


class GSM8K(HubDataset):
    """Grade-school word problems; the reference follows ``####`` (Cobbe et al., 2021, arXiv:2110.14168).

    The prompt asks for the answer in the same form.
    """

    def __init__(
        self,
        path: str = "openai/gsm8k",
        name: str | list[str] | None = "main",
        instruction: str = "{question}\n\nPlease reason step by step, and end with #### and the number.",
        **kwargs: Any,
    ) -> None:
        super().__init__(path, name, reference="hashes", instruction=instruction, **kwargs)


class MATH(HubDataset):
    r"""Competition problems, one subject (``name``) or several; the reference is the last ``\boxed{}``.

    Hendrycks et al. (2021, arXiv:2103.03874). The prompt asks for the answer in the same form.
    """

    def __init__(
        self,
        path: str = "EleutherAI/hendrycks_math",
        name: str | list[str] | None = "algebra",
        question: str = "problem",
        answer: str = "solution",
        instruction: str = "{question}\n\nPlease reason step by step, and put your final answer within \\boxed{}.",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            path, name, question=question, answer=answer, reference="boxed", instruction=instruction, **kwargs
        )


class JSONL(Records):
    """``Records`` under a former name, which recorded runs and ledgers have in their configurations."""

    is_listed = False

    def __init__(self, train: Path, validation: Path | None = None, **kwargs: Any) -> None:
        super().__init__(str(train), None if validation is None else str(validation), **kwargs)
        self.train, self.validation = Path(train), validation and Path(validation)
