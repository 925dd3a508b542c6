"""A campaign that nobody ran: what it would have left on disk, with policies whose worth is known."""

import copy
import json

import numpy as np
import pytest

from rlcredit.base.files import file_sha256
from rlcredit.campaign.declaration import CampaignDeclaration, ComparisonFamily
from rlcredit.run_folder.layout import RunFolder

STEPS = (0, 50, 100)
WORTH = {"base": 0.80, "same": 0.80, "good": 0.90, "bad": 0.70}
CONFIG = {
    "data": {"class_path": "ReasoningGym", "init_args": {"name": "chain_sum", "prompts_per_step": 8}},
    "model": {"validation": {"completions": 4, "temperature": 0.7}, "pass_k": 4},
    "trainer": {"logger": False},
}


class Left:
    """The folder, and how to change what is in it."""

    def __init__(self, root, cost=None, **declared):
        """Leave runs behind; ``cost`` is what a step of each condition decodes, None where nothing is counted."""
        self.cost = cost
        fixed = {"name": root.name, "configs": (), "steps": 100, "primary": "val/pass_at_1", "effect": 0.02}
        conditions = {name: (f"{name}.yaml",) for name in WORTH}
        fixed |= {"conditions": conditions, "baseline": "base", "seeds": tuple(range(8))}
        self.root, self.declaration = root, CampaignDeclaration(**{**fixed, **declared})
        plain, names = self.declaration.to_json(), self.declaration.conditions
        self.ledger = {"declaration": plain, "configs": {n: copy.deepcopy(CONFIG) for n in names}, "cells": {}}
        self.right = {}
        for condition in names:
            for seed in self.declaration.seeds:
                self.run(condition, seed)

    def run(self, condition, seed):
        """Simulate a run: pairs share the luck of their seed and how hard each question is."""
        luck, hard = np.random.default_rng(seed).normal(0, 0.005), np.random.default_rng(99).normal(0, 0.1, 256)
        own = np.random.default_rng([seed, *map(ord, condition)])
        metrics, counted = {}, {}
        for step in STEPS:
            worth = 0.5 + (WORTH[condition] - 0.5) * step / 100
            right = own.random((256, 4)) < (worth + luck + hard[:, None]).clip(0, 1)
            shares = {"val/pass_at_1": right.mean(), "val/pass_at_k": right.any(-1).mean()}
            found = {**shares, "val/entropy": 0.1, "val/completion_length": 30.0}
            self.right[condition, seed] = right
            metrics[str(step)] = {name: float(value) for name, value in found.items()}
            numbers = {"numbers": list(range(256)), "questions_sha256": "2" * 64}
            outcome = {"step": step, "metrics": metrics[str(step)], **numbers}
            if self.cost:
                kinds = {"decoded": self.cost[condition] * step + seed * bool(step), "prefill": 10 * step}
                kinds |= {"forward": 0, "backward": 100 * step, "decoded_by_probes": 0}
                outcome["tokens"] = counted[str(step)] = kinds
            path = RunFolder(self.root / condition / f"seed{seed}").evaluation_file(step)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**outcome, "right": right.astype(int).tolist()}))
        self.ledger["cells"][f"{condition}/seed{seed}"] = {
            "state": "finished",
            "seconds": 60.0,
            "metrics": metrics,
            **({"tokens": counted} if counted else {}),
            "differences": [],
            "executed_sha256": f"{seed}" * 64,
            "versions": {"git_commit": "1" * 40, "version.torch": "2.13.0"},
        }

    def change(self, cell, step, **entries):
        """Write other things into an evaluation of a run, which the ledger then records."""
        path = RunFolder(self.root / cell).evaluation_file(step)
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    def write(self, record=True):
        """Put the ledger on disk, with the hashes of the files as they are now; return the folder."""
        for name, entry in self.ledger["cells"].items() if record else ():
            paths = {str(step): RunFolder(self.root / name).evaluation_file(step) for step in STEPS}
            entry["held_out_sha256"] = {step: file_sha256(path) for step, path in paths.items()}
        (self.root / "ledger.json").write_text(json.dumps(self.ledger))
        return self.root

    def values(self, condition):
        """Return pass@1 of every seed after the last step."""
        return np.array([self.right[condition, seed].mean() for seed in self.declaration.seeds])


@pytest.fixture
def left(tmp_path):
    """Return a function that leaves such a campaign behind."""

    def leave(name="made_up", **declared):
        (tmp_path / name).mkdir()
        return Left(tmp_path / name, **declared)

    return leave


@pytest.fixture
def two_families():
    return {"first": ComparisonFamily("base", ("same", "good")), "second": ComparisonFamily("good", ("bad",))}
