"""From the answers in a folder to its files: every number as JSON, tables as Markdown, answers one a line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rlcredit.evaluation.comparison import Comparison, comparisons
from rlcredit.evaluation.folder import Answer, EvaluationFolder, Place
from rlcredit.evaluation.request import Request
from rlcredit.evaluation.scores import Scores, scores
from rlcredit.evaluation.tables import page
from rlcredit.files import write_atomically


class Results(NamedTuple):
    """What an evaluation has found."""

    measured: Mapping[Place, Scores]
    compared: Sequence[Comparison]


def found(request: Request, answers: Mapping[Place, Sequence[Answer]]) -> Results:
    """Score all answers and compare the policies.

    Args:
        request: that has been asked.
        answers: all of them.

    """
    drawing = request.drawing
    policies = [contestant.name for contestant in request.contestants]
    measured = {
        Place(name, each.name): scores(answers[Place(name, each.name)], drawing.completions, drawing.ks)
        for each in request.sets
        for name in policies
    }
    return Results(measured, comparisons(measured, policies, request.margin) if len(policies) > 1 else [])


def written(
    request: Request,
    folder: EvaluationFolder,
    results: Results,
    answers: Mapping[Place, Sequence[Answer]],
    versions: Mapping[str, str],
) -> None:
    """Write the files of a finished evaluation.

    Args:
        request: that has been asked.
        folder: of it.
        results: of it.
        answers: all of them.
        versions: of the code.

    """
    tasks = {
        each.name: {name: scores.plain() for (name, task), scores in results.measured.items() if task == each.name}
        for each in request.sets
    }
    content = {
        "results": tasks,
        "comparisons": [each.plain() for each in results.compared],
        "margin": request.margin,
        "drawing": asdict(request.drawing),
        "settings": request.settings(),
        "versions": dict(versions),
    }
    write_atomically(folder.results, json.dumps(content, indent=1, ensure_ascii=False))
    write_atomically(folder.table, page(request, *results))
    lines = (json.dumps(row, ensure_ascii=False) for row in rows(request, answers))
    write_atomically(folder.answers, "".join(f"{line}\n" for line in lines))


def rows(request: Request, answers: Mapping[Place, Sequence[Answer]]) -> Iterator[dict[str, Any]]:
    """Yield every answer with its policy, its question as the policy read it, and the reference.

    Args:
        request: that has been asked.
        answers: all of them.

    """
    for each in request.sets:
        prompts = each.task.held_out_prompts(0, each.size)
        asked = dict(zip(prompts.numbers, zip(prompts.questions, prompts.examples, strict=True), strict=True))
        for contestant in request.contestants:
            for answer in answers[Place(contestant.name, each.name)]:
                prompt, example = asked[answer["question"]]
                said = {"policy": contestant.name, "task": each.name, "prompt": prompt, "reference": example.reference}
                yield {**said, **answer}
