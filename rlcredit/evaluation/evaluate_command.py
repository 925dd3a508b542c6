"""``rlcredit evaluate``: the steps, in order."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.base.exit_status import FINISHED, REFUSED, RunStopped
from rlcredit.base.interrupts import SignalInterrupt
from rlcredit.base.messages import print_message
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.config.passwords import redact_passwords
from rlcredit.evaluation.answering import answer_remaining_questions
from rlcredit.evaluation.evaluate_options import make_evaluation_parser
from rlcredit.evaluation.evaluation_folder import EvaluationFolder
from rlcredit.evaluation.evaluation_request import EvaluationRequest, hash_evaluation_settings
from rlcredit.evaluation.evaluation_tables import render_evaluation_summary
from rlcredit.evaluation.mlflow_publication import publish_evaluation
from rlcredit.evaluation.request_builder import build_evaluation_request, parse_device
from rlcredit.evaluation.result_files import compute_evaluation_results, write_evaluation_files
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.policy.adapters import load_adapter_weights, refuse_foreign_adapter
from rlcredit.policy.model_loading import find_fastest_device
from rlcredit.preflight.dry_run import REFUSAL_TYPES, explain_refusal
from rlcredit.preflight.policy import refuse_unloadable_policy
from rlcredit.record import MLflowDestination
from rlcredit.record.publication import make_results_destination
from rlcredit.supervision.graceful_stop import SignalHandler

_SIGNAL_HANDLER = SignalHandler()


def run_evaluate_command(args: Sequence[str]) -> int:
    """Evaluate policies; return 0 if done, 2 if refused, 128 plus the signal if interrupted."""
    silence_libraries()
    sys.path.append(str(Path.cwd()))  # a task file may name a task in the working directory
    options = make_evaluation_parser().parse_args(args)
    with _SIGNAL_HANDLER.handle_signals():
        try:
            return _run_evaluation(options)
        except SignalInterrupt as interrupted:
            print_message(f"interrupted by {interrupted}; to go on: {shlex.join(['rlcredit', 'evaluate', *args])}")
            return interrupted.status
        except RunStopped as ended:
            print_message(f"error: {ended}")
            return ended.status


def _run_evaluation(options: argparse.Namespace) -> int:
    code = read_code_versions()
    with contextlib.ExitStack() as resources:
        try:
            device = parse_device(options.device) if options.device else find_fastest_device()
            request = build_evaluation_request(options)
            _refuse_unusable_policies(request)
            settings = request.settings()
            folder = EvaluationFolder(
                options.out
                or Path("evaluations") / _name_evaluation_folder(request, hash_evaluation_settings(settings))
            )
            tags = {"kind": "evaluation", "seed": str(request.sampling.seed), **code}
            destination = make_results_destination(options.mlflow, options.experiment, folder.path.resolve().name, tags)
            assert destination is None or destination.address  # refuses an environment without one
            resources.enter_context(folder.hold_lock())
            folder.begin_or_resume(settings, code)
        except REFUSAL_TYPES as error:
            print(f"error: {redact_passwords(' '.join(explain_refusal(error).split()))}", file=sys.stderr)
            return REFUSED
        resources.callback(request.engine.close)
        answer_remaining_questions(request, folder, device, options.batch_size)
        _finish_evaluation(request, folder, destination, code)
    return FINISHED


def _refuse_unusable_policies(request: EvaluationRequest) -> None:
    """Refuse missing models and adapters of other models before any weights are read."""
    settings: list[Mapping[str, object]] = []
    for policy in request.policies:
        if policy.settings not in settings:
            settings.append(policy.settings)
            folder = policy.adapter if policy.adapter and policy.adapter.is_dir() else None
            try:
                refuse_unloadable_policy(policy.build_policy(), folder)
            except ValueError as error:
                raise ValueError(str(error).replace("model.policy.path", "--model")) from None
        if policy.adapter:
            refuse_foreign_adapter(policy.build_policy(), load_adapter_weights(policy.adapter))


def _finish_evaluation(
    request: EvaluationRequest, folder: EvaluationFolder, destination: MLflowDestination | None, code: Mapping[str, str]
) -> None:
    answers = folder.read_answers()
    results = compute_evaluation_results(request, answers)
    write_evaluation_files(request, folder, results, answers, code)
    print(render_evaluation_summary(request, *results))
    print(f"\n{folder.table}")
    _SIGNAL_HANDLER.stop_timer()
    if destination is not None and not folder.has_record:
        publish_evaluation(request, folder, results, answers, destination)


def _name_evaluation_folder(request: EvaluationRequest, settings: str) -> str:
    """Return the folder name of an evaluation, which the same request always finds again."""
    policy = request.policies[-1]
    subject = policy.name if policy.adapter else Path(policy.build_policy().path).name
    return f"{subject}-{settings}"
