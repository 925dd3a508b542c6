"""Former names of modules, classes and functions: what was written with them goes on meaning what it meant.

Configurations, saved runs, kept cards and people's own modules hold dotted paths. :data:`FORMER` says what each is
called now; :func:`resolve_former_path` reads it, and so does ``import``, from the moment that rlcredit is imported.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FORMER = {
    # packages
    "rlcredit.card": "rlcredit.cards",
    "rlcredit.engines": "rlcredit.decoding",
    "rlcredit.functional": "rlcredit.formulas",
    "rlcredit.tracking": "rlcredit.outputs",
    # modules
    "callbacks.base": "rlcredit.credit.operator",
    "callbacks.contract": "rlcredit.credit.contract",
    "callbacks.lints": "rlcredit.credit.stack",
    "callbacks.measurement": "rlcredit.training.periodic_measurement",
    "callbacks.planning_judge": "rlcredit.credit.planning_classifier",
    "callbacks.watched": "rlcredit.credit.undeclared_reads",
    "rlcredit.adapters": "rlcredit.policy.adapters",
    "rlcredit.config.values": "rlcredit.config.allowed_values",
    "rlcredit.dynamic_sampling": "rlcredit.training.dynamic_sampling",
    "rlcredit.engines.base": "rlcredit.decoding.engine",
    "rlcredit.engines.cache": "rlcredit.decoding.key_value_cache",
    "rlcredit.engines.decoding": "rlcredit.decoding.decoding_loop",
    "rlcredit.engines.filters": "rlcredit.decoding.token_filters",
    "rlcredit.engines.fused": "rlcredit.decoding.fused_forward",
    "rlcredit.engines.through_transformers": "rlcredit.decoding.transformers_forward",
    "rlcredit.engines.transport": "rlcredit.decoding.http_client",
    "rlcredit.exits": "rlcredit.base.exit_status",
    "rlcredit.exported": "rlcredit.policy.export",
    "rlcredit.formulas.choices": "rlcredit.formulas.parameter_choices",
    "rlcredit.functional.choices": "rlcredit.formulas.parameter_choices",
    "rlcredit.functional.directions": "rlcredit.formulas.gradient_vectors",
    "rlcredit.functional.normalization": "rlcredit.formulas.masked",
    "rlcredit.functional.processes": "rlcredit.formulas.distributed",
    "rlcredit.gradients": "rlcredit.training.credit_gradients",
    "rlcredit.loading": "rlcredit.policy.model_loading",
    "rlcredit.losses.weights": "rlcredit.losses.base",
    "rlcredit.metrics": "rlcredit.training.metrics",
    "rlcredit.microbatches": "rlcredit.training.micro_batches",
    "rlcredit.module": "rlcredit.training.module",
    "rlcredit.oracle.credit": "rlcredit.oracle.credit_estimate",
    "rlcredit.oracle.ranking": "rlcredit.oracle.credit_agreement",
    "rlcredit.oracle.scores": "rlcredit.oracle.credit_agreement",
    "rlcredit.oracle.tree": "rlcredit.oracle.prefix_tree",
    "rlcredit.outputs.graceful_stop": "rlcredit.supervision.graceful_stop",
    "rlcredit.outputs.no_reward": "rlcredit.supervision.no_reward",
    "rlcredit.outputs.process_watchdog": "rlcredit.supervision.process_watchdog",
    "rlcredit.outputs.progress": "rlcredit.supervision.progress",
    "rlcredit.prompt": "rlcredit.policy.prompt_format",
    "rlcredit.record.store": "rlcredit.record.mlflow_run",
    "rlcredit.rollout": "rlcredit.credit.rollout",
    "rlcredit.tasks.base": "rlcredit.tasks.task",
    "rlcredit.tasks.conversation": "rlcredit.tasks.example",
    "rlcredit.tasks.files": "rlcredit.tasks.task_files",
    "rlcredit.tasks.held_out": "rlcredit.tasks.held_out_sets",
    "rlcredit.tasks.jsonl": "rlcredit.tasks.hub",
    "rlcredit.tasks.order": "rlcredit.tasks.prompt_order",
    "rlcredit.tasks.sources": "rlcredit.tasks.record_sources",
    "rlcredit.tasks.split": "rlcredit.tasks.held_out_split",
    "rlcredit.tasks.values": "rlcredit.tasks.record_values",
    "rlcredit.tracking.card": "rlcredit.outputs.adapter",
    "rlcredit.tracking.companions": "rlcredit.supervision.process_watchdog",
    "rlcredit.tracking.completions": "rlcredit.outputs.completion_table",
    "rlcredit.tracking.config": "rlcredit.outputs.saved_config",
    "rlcredit.tracking.curve": "rlcredit.outputs.learning_curve",
    "rlcredit.tracking.final": "rlcredit.outputs.held_out",
    "rlcredit.tracking.headline": "rlcredit.outputs.held_out",
    "rlcredit.tracking.identity": "rlcredit.outputs.run_identity",
    "rlcredit.tracking.interruption": "rlcredit.supervision.graceful_stop",
    "rlcredit.tracking.no_reward": "rlcredit.supervision.no_reward",
    "rlcredit.tracking.parameters": "rlcredit.outputs.run_identity",
    "rlcredit.tracking.progress": "rlcredit.supervision.progress",
    "rlcredit.tracking.status": "rlcredit.outputs.run_status",
    "rlcredit.tracking.versions": "rlcredit.outputs.code_versions",
    "rlcredit.verification.answers": "rlcredit.verification.answer_formats",
    "rlcredit.verification.cases": "rlcredit.verification.worker_pool",
    "rlcredit.verification.jury": "rlcredit.verification.worker_pool",
    "rlcredit.verification.named": "rlcredit.verification.user_judge",
    "rlcredit.verification.own": "rlcredit.verification.user_verifier",
    "rlcredit.verification.plain": "rlcredit.verification.answer_grammar",
    "rlcredit.verification.scorers": "rlcredit.verification.reasoning_gym_scorers",
    "rlcredit.verification.statements": "rlcredit.verification.answer_formats",
    # classes
    "callbacks.contract.Contract": "rlcredit.credit.contract.OperatorContract",
    "callbacks.measurement.Measurement": "rlcredit.training.periodic_measurement.PeriodicMeasurement",
    "callbacks.planning_judge.Anchors": "rlcredit.credit.planning_classifier.PlanningAnchors",
    "callbacks.planning_judge.PlanningJudge": "rlcredit.credit.planning_classifier.PlanningClassifier",
    "callbacks.watched.Notes": "rlcredit.credit.undeclared_reads.UndeclaredReads",
    "rlcredit.engines.cache.Cache": "rlcredit.decoding.key_value_cache.KeyValueCache",
    "rlcredit.engines.decoding.Draw": "rlcredit.decoding.decoding_loop.TokenSampler",
    "rlcredit.engines.decoding.Drawn": "rlcredit.decoding.decoding_loop.DrawnTokens",
    "rlcredit.engines.decoding.Reader": "rlcredit.decoding.decoding_loop.DecodingForward",
    "rlcredit.engines.filters.Chain": "rlcredit.decoding.token_filters.FilterChain",
    "rlcredit.engines.filters.Filter": "rlcredit.decoding.token_filters.TokenFilter",
    "rlcredit.engines.fused.Fused": "rlcredit.decoding.fused_forward.FusedForward",
    "rlcredit.engines.through_transformers.ThroughTransformers": (
        "rlcredit.decoding.transformers_forward.TransformersForward"
    ),
    "rlcredit.engines.transport.Transport": "rlcredit.decoding.http_client.RetryingClient",
    "rlcredit.exits.Ended": "rlcredit.base.exit_status.RunStopped",
    "rlcredit.exits.NoEngine": "rlcredit.base.exit_status.EngineUnavailable",
    "rlcredit.exits.NoStorage": "rlcredit.base.exit_status.StorageUnavailable",
    "rlcredit.oracle.tree.Tree": "rlcredit.oracle.prefix_tree.PrefixTree",
    "rlcredit.policy.Context": "rlcredit.policy.policy.PromptContext",
    "rlcredit.policy.LoRA": "rlcredit.policy.policy.LoRA",
    "rlcredit.policy.Policy": "rlcredit.policy.policy.Policy",
    "rlcredit.policy.Scores": "rlcredit.policy.policy.TokenScores",
    "rlcredit.prompt.Prompt": "rlcredit.policy.prompt_format.PromptFormat",
    "rlcredit.prompt.Turn": "rlcredit.policy.prompt_format.ChatMessage",
    "rlcredit.record.store.Store": "rlcredit.record.mlflow_run.MLflowRun",
    "rlcredit.tasks.Prompts": "rlcredit.tasks.task.PromptBatch",
    "rlcredit.tasks.base.Prompts": "rlcredit.tasks.task.PromptBatch",
    "rlcredit.tasks.sources.Source": "rlcredit.tasks.record_sources.RecordSource",
    "rlcredit.tracking.companions.Companions": "rlcredit.supervision.process_watchdog.ProcessWatchdog",
    "rlcredit.tracking.headline.Headline": "rlcredit.outputs.held_out.HeldOutSummary",
    "rlcredit.tracking.held_out.HeldOut": "rlcredit.outputs.held_out.HeldOutVerdicts",
    "rlcredit.tracking.interruption.Interruption": "rlcredit.supervision.graceful_stop.GracefulStop",
    "rlcredit.tracking.progress.Bar": "rlcredit.supervision.progress.StepProgressBar",
    "rlcredit.verification.cases.Case": "rlcredit.verification.worker_pool.PendingRequest",
    "rlcredit.verification.jury.Jury": "rlcredit.verification.worker_pool.WorkerPool",
    "rlcredit.verification.own.OwnVerifier": "rlcredit.verification.user_verifier.UserVerifier",
    # functions that operators, losses, tasks, engines and verifiers of one's own call
    "rlcredit.engines.filters.filters": "rlcredit.decoding.token_filters.make_token_filter",
    "rlcredit.engines.noise.continuations": "rlcredit.decoding.noise.continuation_uniforms",
    "rlcredit.engines.noise.seeds": "rlcredit.decoding.noise.sampling_seeds",
    "rlcredit.engines.noise.stream": "rlcredit.decoding.noise.stream_number",
    "rlcredit.engines.noise.uniforms": "rlcredit.decoding.noise.sampling_uniforms",
    "rlcredit.functional.choices.one_of": "rlcredit.formulas.parameter_choices.require_choice",
    "rlcredit.functional.directions.agreement": "rlcredit.formulas.gradient_vectors.vector_agreement",
    "rlcredit.functional.directions.dot": "rlcredit.formulas.gradient_vectors.inner_product",
    "rlcredit.functional.directions.gram": "rlcredit.formulas.gradient_vectors.gram_matrix",
    "rlcredit.functional.finite.first_not_finite": "rlcredit.formulas.finite.find_non_finite_name",
    "rlcredit.functional.groups.group_filled": "rlcredit.formulas.groups.group_imputed_values",
    "rlcredit.functional.groups.unanimous": "rlcredit.formulas.groups.unanimous_groups",
    "rlcredit.functional.normalization.normalized": "rlcredit.formulas.masked.completion_normalized",
    "rlcredit.functional.outcome_sets.set_normalized": "rlcredit.formulas.outcome_sets.outcome_normalized",
    "rlcredit.functional.processes.anywhere": "rlcredit.formulas.distributed.is_set_anywhere",
    "rlcredit.functional.processes.first_given": "rlcredit.formulas.distributed.share_first_value",
    "rlcredit.functional.processes.gathered": "rlcredit.formulas.distributed.gather_over_processes",
    "rlcredit.functional.processes.rank_and_world": "rlcredit.formulas.distributed.rank_and_world_size",
    "rlcredit.functional.processes.several": "rlcredit.formulas.distributed.has_other_processes",
    "rlcredit.functional.processes.summed": "rlcredit.formulas.distributed.sum_over_processes",
    "rlcredit.functional.quadrants.high_entropy": "rlcredit.formulas.quadrants.high_entropy_mask",
    "rlcredit.functional.quadrants.quadrants": "rlcredit.formulas.quadrants.quadrant_masks",
    "rlcredit.functional.scopes.masked_share": "rlcredit.formulas.scopes.kept_token_share",
    "rlcredit.functional.scopes.scopes_held": "rlcredit.formulas.scopes.scope_count",
    "rlcredit.functional.scopes.top_share": "rlcredit.formulas.scopes.top_share_mask",
    "rlcredit.functional.uncertainty.logprobs_and_entropy_from_logits": (
        "rlcredit.formulas.uncertainty.logprobs_and_entropy"
    ),
    "rlcredit.functional.uncertainty.odds": "rlcredit.formulas.uncertainty.token_odds",
    "rlcredit.tasks.base.best_verdict": "rlcredit.tasks.task.pick_best_verdict",
    "rlcredit.tasks.conversation.conversation": "rlcredit.tasks.example.build_conversation",
    "rlcredit.tasks.split.disjoint": "rlcredit.tasks.held_out_split.make_disjoint_sets",
    "rlcredit.tasks.split.held_out": "rlcredit.tasks.held_out_split.is_held_out",
    "rlcredit.tasks.split.split": "rlcredit.tasks.held_out_split.split_held_out",
    "rlcredit.verification.answers.final_answer": "rlcredit.verification.answer_formats.find_final_answer",
}
"""Present dotted paths by former ones. The longest entry that begins a path decides; what follows it stays."""


def resolve_former_path(path: str) -> str:
    """Return the present name of a module, of what is in it, or of anything below a former package.

    Example:
        >>> resolve_former_path("rlcredit.engines.vllm_server.VLLMServer"), resolve_former_path("callbacks.tokens.gtpo")
        ('rlcredit.decoding.vllm_server.VLLMServer', 'callbacks.tokens.gtpo')
        >>> resolve_former_path("rlcredit.tasks.base.Prompts"), resolve_former_path("rlcredit.tasks.base.Task.judge")
        ('rlcredit.tasks.task.PromptBatch', 'rlcredit.tasks.task.Task.judge')

    """
    parts = path.split(".")
    for depth in range(len(parts), 1, -1):
        if present := FORMER.get(".".join(parts[:depth])):
            return ".".join([present, *parts[depth:]])
    return path


def load_former_name(path: str) -> Any:
    """Import what a former dotted path names.

    Raises:
        AttributeError: no entry begins the path, or the present module has no such name.

    """
    module, _, name = path.rpartition(".")
    present = resolve_former_path(path)
    if present == path or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    present_module, _, present_name = present.rpartition(".")
    return getattr(importlib.import_module(present_module), present_name)


class _FormerModule(ModuleType):
    """A module under its former name: whatever is asked of it is the object that the present module has."""

    def __getattr__(self, name: str) -> Any:
        return load_former_name(f"{self.__name__}.{name}")


class _FormerFinder:
    """Find modules by their former names; a finder and a loader as Python wants them."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return how a former module is made; None for every other name."""
        present = resolve_former_path(name)
        if present == name or importlib.util.find_spec(present) is None:
            return None
        return ModuleSpec(name, cls, is_package=any(former.startswith(f"{name}.") for former in FORMER))  # pyright: ignore[reportArgumentType]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """Return a module that forwards."""
        return _FormerModule(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: there is no code under a former name."""


def keep_former_names_importable() -> None:
    """Have ``import`` find former modules wherever it finds no other."""
    if _FormerFinder not in sys.meta_path:
        sys.meta_path.append(_FormerFinder)  # pyright: ignore[reportArgumentType]
