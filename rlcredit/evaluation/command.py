"""``rlcredit evaluate``: what happens, in order."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.adapters import refuse_another_model, weights
from rlcredit.command_line.quiet import quiet
from rlcredit.evaluation.arguments import parser, requested
from rlcredit.evaluation.asking import ask
from rlcredit.evaluation.folder import EvaluationFolder
from rlcredit.evaluation.publication import destination_of, publish
from rlcredit.evaluation.request import Request, digest
from rlcredit.evaluation.results import found, written
from rlcredit.evaluation.tables import screen
from rlcredit.exits import FINISHED, REFUSED, Ended
from rlcredit.inputs.feasible import REFUSALS, reason
from rlcredit.inputs.passwords import redacted
from rlcredit.inputs.targets import refuse_policy
from rlcredit.loading import fastest_device
from rlcredit.notices import tell
from rlcredit.record import Destination
from rlcredit.tracking.interruption import Interrupted, Signals
from rlcredit.tracking.versions import versions

SIGNALS = Signals()


def main(args: Sequence[str]) -> int:
    """Evaluate; return 0 if it is done, 2 if it was refused, 128 and the signal if one has interrupted it."""
    quiet()
    sys.path.append(str(Path.cwd()))  # a task file may name a task in the working directory
    options = parser().parse_args(args)
    with SIGNALS.heeded():
        try:
            return _evaluated(options)
        except Interrupted as interrupted:
            tell(f"interrupted by {interrupted}; to go on: {shlex.join(['rlcredit', 'evaluate', *args])}")
            return interrupted.status
        except Ended as ended:
            tell(f"error: {ended}")
            return ended.status


def _evaluated(options: argparse.Namespace) -> int:
    code = versions()
    with contextlib.ExitStack() as held:
        try:
            request = requested(options)
            _refuse(request)
            settings = request.settings()
            folder = EvaluationFolder(options.out or Path("evaluations") / _name(request, digest(settings)))
            to = destination_of(options.mlflow, options.experiment, request, folder.path, code)
            held.enter_context(folder.locked())
            folder.begin(settings, code)
        except REFUSALS as error:
            print(f"error: {redacted(' '.join(reason(error).split()))}", file=sys.stderr)
            return REFUSED
        ask(request, folder, options.device or fastest_device(), options.batch_size, options.threads)
        _finish(request, folder, to, code)
    return FINISHED


def _refuse(request: Request) -> None:
    """Refuse models that do not exist, and adapters of others, before any weight of a model is read."""
    settings: list[Mapping[str, object]] = []
    for contestant in request.contestants:
        if contestant.settings not in settings:
            settings.append(contestant.settings)
            folder = contestant.adapter if contestant.adapter and contestant.adapter.is_dir() else None
            try:
                refuse_policy(contestant.policy(), folder)
            except ValueError as error:
                raise ValueError(str(error).replace("model.policy.path", "--model")) from None
        if contestant.adapter:
            refuse_another_model(contestant.policy(), weights(contestant.adapter))


def _finish(request: Request, folder: EvaluationFolder, to: Destination | None, code: Mapping[str, str]) -> None:
    answers = folder.read()
    results = found(request, answers)
    written(request, folder, results, answers, code)
    print(screen(request, *results))
    print(f"\n{folder.table}")
    SIGNALS.over()
    if to is not None and not folder.recorded:
        publish(request, folder, results, answers, to)


def _name(request: Request, settings: str) -> str:
    """Return the name of a folder that the same request finds again."""
    last = request.contestants[-1]
    who = last.name if last.adapter else Path(last.policy().path).name
    return f"{who}-{settings}"
