"""What is measured for the plan, and what is not measured twice."""

from types import SimpleNamespace

import pytest

from rlcredit.campaign import measure
from rlcredit.campaign.resolution import resolved

STACKS = "c1_grpo", "c8_maxrl_sepa", "frozen", "monte_carlo_credit", "tepo"


def resolution(condition):
    return resolved(["--config", "configs/tiny.yaml", "--config", f"configs/conditions/{condition}.yaml"])


@pytest.fixture(scope="module")
def resolutions():
    return {name: resolution(name) for name in STACKS}


@pytest.fixture
def measured(monkeypatch):
    """Return the conditions measured, by stand-ins for short runs."""
    called = []

    def seconds(given, resolution, launcher, root):
        called.append(resolution.leaves["condition"])
        return {"start": 1.0, "step": float(len(called)), "validation": 1.0}

    monkeypatch.setattr(measure, "seconds", seconds)
    return called


def asked(resolutions, root, threads=1, **more):
    given = dict.fromkeys(resolutions, ())
    return measure.by_condition(given, resolutions, SimpleNamespace(threads=threads), root, **more)


def test_conditions_that_differ_in_credit_cost_alike(resolutions, measured, tmp_path):
    found = asked(resolutions, tmp_path)
    assert measured == ["c1_grpo", "monte_carlo_credit", "tepo"]
    assert list(found) == list(STACKS)
    assert found["c1_grpo"] == found["c8_maxrl_sepa"] == found["frozen"]
    assert found["monte_carlo_credit"] != found["c1_grpo"]


def test_nothing_is_measured_twice(resolutions, measured, tmp_path):
    found = asked(resolutions, tmp_path)
    assert asked(resolutions, tmp_path) == found
    assert len(measured) == 3
    asked(resolutions, tmp_path, threads=2)
    assert len(measured) == 6


def test_what_is_unknown_and_not_to_be_measured_is_left_out(resolutions, measured, tmp_path):
    two = {name: resolutions[name] for name in ("c1_grpo", "monte_carlo_credit")}
    asked({"c1_grpo": two["c1_grpo"]}, tmp_path)
    assert list(asked(two, tmp_path, measure=False)) == ["c1_grpo"]
    assert measured == ["c1_grpo"]
