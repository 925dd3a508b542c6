"""Recorder of what operators do, in every Python process that has this folder in its path.

Each call of an operator is a line of JSON in the file that ``RECORDED_EFFECTS`` names: a process may end in any way.
"""

import functools
import importlib.util
import json
import os
import sys

OPERATORS = "rlcredit.credit.operator"

REHEARSALS = "rlcredit.preflight.stack_rehearsal"
"""Module that tries operators on made-up completions, which is no effect of an example."""


class WrappingFinder:
    """Finder that wraps the method of all operators when their module is first imported."""

    def find_spec(self, name, path=None, target=None):
        if name != OPERATORS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_wrap(module):
            execute(module)
            module.CreditOperator.assign_checked = wrap_assignment(module.CreditOperator.assign_checked)

        spec.loader.exec_module = execute_and_wrap
        return spec


def wrap_assignment(assign):
    """Return a method that also records what it has changed."""

    @functools.wraps(assign)
    def assign_and_record(operator, rollout, *args, **kwargs):
        before = {name: getattr(rollout, name) for name in operator.writes}
        metrics = assign(operator, rollout, *args, **kwargs)
        if sys._getframe(1).f_globals["__name__"] != REHEARSALS:
            record(describe_call(operator, rollout, before, metrics))
        return metrics

    return assign_and_record


def describe_call(operator, rollout, before, metrics):
    """Return what one call of an operator did."""
    groups = rollout.rewards.where(rollout.judged, 0).view(-1, rollout.group_size)
    return {
        "operator": type(operator).__name__,
        "writes": bool(operator.writes),
        "changed": any(is_changed(value, getattr(rollout, name), rollout.mask) for name, value in before.items()),
        "metrics": len(metrics),
        "credit": bool(rollout.credited_rows().any()) or rollout.alternatives is not None,
        "spread": bool((groups.amax(-1) > groups.amin(-1)).any()),
        "reward": float(rollout.rewards[rollout.judged].mean()),
    }


def is_changed(before, after, mask):
    """Say whether a field has another value on sampled tokens."""
    if hasattr(before, "shape") and hasattr(after, "shape"):
        here = mask if before.shape == mask.shape else mask.any(-1)
        return bool((before[here] != after[here]).any())
    return before is not after and before != after


def record(event):
    """Append an event to the file."""
    with open(os.environ["RECORDED_EFFECTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


if "RECORDED_EFFECTS" in os.environ:
    sys.meta_path.insert(0, WrappingFinder())
