"""Descriptions of a configuration as the program that it describes; nothing is loaded."""

import inspect
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from lightning.pytorch import Trainer

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.cli.episode_text import describe_episodes
from rlcredit.credit.contract import OperatorContract, select_operators
from rlcredit.credit.stack_checks import bound_advantages, explain_idle_operators
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.episodes.environment import Environment
from rlcredit.losses import PolicyLoss
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight.memory import estimate_memory, find_pass_obstacle
from rlcredit.preflight.policy import select_lora_layers
from rlcredit.preflight.time import report_time
from rlcredit.preflight.weights import explain_missing_folder
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule


def describe_configuration(trainer: Trainer, module: PolicyModule, task: Task, condition: str) -> str:
    """Describe stack, step, loss and schedule in a few aligned lines."""
    episode_lines = describe_episodes(module, task, render_call(task.environment))
    rows = [
        ("condition", condition),
        ("policy", _describe_policy(module)),
        *([("adapter", experts)] if (experts := _describe_adapted_experts(module)) else []),
        ("task", f"{render_call(task)}: {task.prompts_per_step} prompts per step"),
        *([("rewards", task.rewards)] if task.rewards else []),
        *[("" if number else "episodes", text) for number, text in enumerate(episode_lines)],
        ("step", _describe_step(module, task)),
        *([("engine", _describe_engine(module))] if module.engine.ahead else []),
        ("update", _describe_updates(trainer, module)),
        ("loss", f"{render_call(module.loss)}{_render_papers(module.loss)}"),
        ("optimizer", _describe_optimizer(module)),
        ("schedule", _describe_schedule(trainer, module, task)),
        ("repeats", _describe_repetition(module, task)),
    ]
    forecast = estimate_memory(trainer, module, task)
    missing = (
        explain_missing_folder(module.policy) or f"the sizes of {module.policy.path} are neither listed nor downloaded"
    )
    obstacle_lines = [f"not known: {missing}"]
    memory_lines = obstacle_lines if forecast is None else list(forecast.report_lines())
    rows += [("memory" if number == 0 else "", text) for number, text in enumerate(memory_lines)]
    if forecast is not None:
        card = forecast.way.owner.removeprefix("the ")
        time_lines = report_time(trainer, module, task, _count_steps(trainer, module, task), card)
        rows += [("" if number else "time", text) for number, text in enumerate(time_lines)]
    lines = [f"{title:<11}{text}" for title, text in rows]
    stack = find_trainer_stack(trainer)
    return "\n".join([*lines, "", *describe_stack(stack, module.sampling.completions, task.has_real_rewards)])


def describe_stack(stack: Sequence[OperatorContract], group_size: int, has_real_rewards: bool = False) -> Iterator[str]:
    """Yield the stack, one operator per line: what it reads and writes, its largest advantage, and its papers.

    Args:
        stack: Operators, from top to bottom.
        group_size: Completions per prompt, G.
        has_real_rewards: Whether the rewards of the task are any real numbers.

    """
    calls = [render_call(operator) for operator in stack]
    width = max([len("REINFORCE"), *map(len, calls)])
    yield f"stack, from top to bottom, for {'real rewards' if has_real_rewards else 'rewards in [0, 1]'}"
    reward_limit = "" if has_real_rewards else ", at most 1"
    yield f"      {'REINFORCE':<{width}}   rewards -> advantages{reward_limit}   (before any operator)"
    limits = bound_advantages(stack, group_size, has_real_rewards)[1:]
    for place, (operator, call, limit) in enumerate(zip(stack, calls, limits, strict=True)):
        writes = ", ".join(sorted(operator.writes)) or "nothing (it watches)"
        bound_note = f", at most {limit:.4g}" if "advantages" in operator.writes and math.isfinite(limit) else ""
        reads = ", ".join(sorted(operator.reads)) or "nothing"
        reward_note = "   binary rewards only" if operator.name_binary_operator() else ""
        yield f"  {place:>2}  {call:<{width}}   {reads} -> {writes}{bound_note}{reward_note}{_render_papers(operator)}"
    yield from (f"warning: {problem}" for problem in explain_idle_operators(stack, group_size, has_real_rewards))


def collect_run_parameters(trainer: Trainer, module: PolicyModule, task: Task) -> dict[str, Any]:
    """Return the few parameters by which runs are distinguished in a table."""
    return {
        "stack": " > ".join(render_call(operator) for operator in find_trainer_stack(trainer)) or "REINFORCE",
        "policy": _describe_policy(module),
        "task": render_call(task),
        **({"episodes": _name_episodes(task)} if task.environment else {}),
        **({"rewards": task.rewards} if task.rewards else {}),
        "loss": render_call(module.loss),
        "updates": f"{module.updates_per_rollout} per rollout, {module.minibatches} mini-batches",
        "sampling_rounds": module.rounds,
        **({"ahead": f"{module.engine.ahead} rollout"} if module.engine.ahead else {}),
        "optimizer": _describe_optimizer(module),
        "prompts_per_step": task.prompts_per_step,
        "completions": module.sampling.completions,
        "max_tokens": module.sampling.max_tokens,
        "temperature": module.sampling.temperature,
        "max_steps": trainer.max_steps,
    }


def _name_episodes(task: Task) -> str:
    """Return the environment of a task with the limits of its episodes."""
    turns, tokens = task.turn_limits
    return f"{render_call(task.environment)}, at most {turns} turns{'' if tokens is None else f' of {tokens} tokens'}"


def find_trainer_stack(trainer: Trainer) -> list[OperatorContract]:
    """Return the operators of a trainer, from top to bottom."""
    callbacks = read_callbacks(trainer)
    return select_operators(callbacks)


def list_cited_papers(thing: Any) -> list[str]:
    """Return the arXiv numbers behind an operator or a loss, and behind those inside it.

    They are those of its class's docstring, otherwise of the module's, otherwise of the functions beside it. Names of
    methods clash, these numbers do not.

    Example:
        >>> from callbacks import RSIMask
        >>> list_cited_papers(RSIMask())
        ['2606.31575']

    """
    module = inspect.getmodule(type(thing))
    functions = [value for value in vars(module).values() if inspect.isfunction(value)]
    formulas = [value.__doc__ or "" for value in functions if inspect.getmodule(value) is module]
    texts = (type(thing).__doc__, module.__doc__, "\n".join(formulas))
    citations = (re.findall(r"arXiv:(\d{4}\.\d{5})", text or "") for text in texts)
    components = [
        value for value in _read_arguments(thing).values() if isinstance(value, (PolicyLoss, OperatorContract))
    ]
    numbers = [
        *next(filter(None, citations), []),
        *(number for component in components for number in list_cited_papers(component)),
    ]
    return list(dict.fromkeys(numbers))


def _render_papers(thing: Any) -> str:
    """Return the papers behind an operator or a loss as the end of its line."""
    return "".join(f"   arXiv:{number}" for number in list_cited_papers(thing))


def _describe_optimizer(module: PolicyModule) -> str:
    optimizer = module.optimizer([torch.nn.Parameter(torch.zeros(1))])
    settings = {
        name: optimizer.defaults[name] for name in ("lr", "betas", "weight_decay") if name in optimizer.defaults
    }
    schedule = f", {type(module.scheduler(optimizer)).__name__}" if module.scheduler else ""
    return f"{type(optimizer).__name__}({', '.join(f'{name}={value}' for name, value in settings.items())}){schedule}"


def _describe_policy(module: PolicyModule) -> str:
    policy = module.policy
    weights = f"{policy.quantization} base" if policy.quantization else policy.dtype
    targets = policy.lora.targets if isinstance(policy.lora.targets, str) else ", ".join(policy.lora.targets)
    lora = f"LoRA rank {policy.lora.rank}, alpha {policy.lora.alpha:g} on {targets}"
    return f"{policy.path}, {weights}, {lora}{policy.prompt}"


def _describe_adapted_experts(module: PolicyModule) -> str | None:
    """Return the weights of a mixture of experts that have an adapter, in words; None for any other model."""
    sizes = find_policy_sizes(module.policy.location)
    if sizes is None or sizes.architecture is None or not sizes.architecture.sparse:
        return None
    shape = sizes.architecture
    layers = select_lora_layers(module.policy, shape.adaptable_layers())
    weights = sum(layer.parameters for layer in layers.values())
    return (
        f"on {len(layers):,} linear layers with {weights:,} of {sizes.parameters:,} weights; none on the "
        f"{len(shape.sparse):,} routers and their {shape.experts:,} experts each, which are stacked"
    )


def _describe_step(module: PolicyModule, task: Task) -> str:
    prompts, sampling = task.prompts_per_step, module.sampling
    rows = prompts * sampling.completions
    round_note = f"; up to {module.rounds} rounds until all groups are informative" if module.rounds > 1 else ""
    return (
        f"{prompts} prompts x {sampling.completions} completions = {rows} completions of at most "
        f"{sampling.max_tokens} tokens ({rows * sampling.max_tokens:,}), temperature "
        f"{sampling.temperature:g}{round_note}"
    )


def _describe_engine(module: PolicyModule) -> str:
    name = type(module.engine).__name__
    return f"{name}, one rollout ahead: each is drawn with the weights from before the one that precedes it is used"


def _describe_updates(trainer: Trainer, module: PolicyModule) -> str:
    updates, minibatches = module.updates_per_rollout, module.minibatches
    obstacle = find_pass_obstacle(trainer, module)
    reader = f"; by the model's own pass: {obstacle}" if obstacle else "; without padding"
    end = f"{module.micro_batches}{reader}"
    if updates == 1:
        return f"once per rollout{end}"
    return f"{updates} times per rollout, with one of {minibatches} mini-batches of prompts each time{end}"


def _describe_schedule(trainer: Trainer, module: PolicyModule, task: Task) -> str:
    steps = _count_steps(trainer, module, task)
    questions = ", ".join(_describe_held_out_set(held_out_set, trainer, module) for held_out_set in task.held_out_sets)
    evaluation = f"every {trainer.val_check_interval} steps {questions}"
    if steps is None:
        return f"no limit of steps, a callback ends the run; {evaluation}"
    generations = steps // module.updates_per_rollout * task.prompts_per_step * module.sampling.completions
    filter_note = f" kept of up to {generations * module.rounds:,}" if module.rounds > 1 else ""
    return f"{steps} steps, {generations:,} completions{filter_note}; {evaluation}"


def _count_steps(trainer: Trainer, module: PolicyModule, task: Task) -> int | None:
    """Return the steps of a run, which epochs may end if the questions have been read; None without a limit."""
    limits = [trainer.max_steps] if trainer.max_steps >= 0 else []
    if task.train_set and trainer.max_epochs is not None and trainer.max_epochs >= 0:
        rollouts = len(task.train_set) // (task.prompts_per_step * module.rounds)
        limits.append(trainer.max_epochs * rollouts * module.updates_per_rollout)
    return min(limits, default=None)


def _describe_held_out_set(held_out_set: HeldOutSet, trainer: Trainer, module: PolicyModule) -> str:
    """Return the number of questions of a set and of answers to each, within the trainer's limit of batches."""
    questions = f"questions of {held_out_set.name}" if held_out_set.name else "held-out questions"
    completions = held_out_set.choose_sampling(module.validation).completions
    limit_word = "" if held_out_set.size is None or held_out_set.task.held_out_size is not None else "at most "
    number, batch_size = held_out_set.size, held_out_set.task.validation_batch * trainer.world_size
    if isinstance(trainer.limit_val_batches, int) and number is not None:
        number = min(number, trainer.limit_val_batches * batch_size)
    return f"{limit_word}{'all' if number is None else number} {questions} x {completions} completions"


def _describe_repetition(module: PolicyModule, task: Task) -> str:
    """Return the promise that the same command gives the same run, or the obstacles to it."""
    mode = torch.get_deterministic_debug_mode()
    reasons = {
        "trainer.deterministic is false": mode == 0,
        "trainer.deterministic only warns of sums without a fixed order": mode == 1,
        f"{type(module.engine).__name__} draws the completions": not isinstance(module.engine, InProcessEngine),
    }
    if obstacles := "; ".join(reason for reason, holds in reasons.items() if holds):
        return f"not bit for bit: {obstacles}"
    functions = ", as far as functions of your own do" if task.has_user_functions else ""
    return f"bit for bit, with these versions, threads and devices{functions}"


def render_call(thing: Any) -> str:
    """Render an object as the call that created it, if its arguments are stored under their own names."""
    arguments = ", ".join(f"{name}={_render_argument(value)}" for name, value in _read_arguments(thing).items())
    return f"{type(thing).__name__}({arguments})" if arguments else type(thing).__name__


def _read_arguments(thing: Any) -> dict[str, Any]:
    """Return the arguments of an object that it keeps under their own names."""
    names = [name for name in inspect.signature(type(thing).__init__).parameters if name not in ("self", "kwargs")]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def _render_argument(value: Any) -> str:
    """Render an argument, with objects inside it as calls."""
    if isinstance(value, (torch.nn.Module, OperatorContract, Environment)):
        return render_call(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_render_argument, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_render_argument(item)}' for key, item in value.items())}}}"
    return repr(value)
