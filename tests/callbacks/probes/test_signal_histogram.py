import pytest

from callbacks.episode.grpo import GRPO
from callbacks.planning.random_planner import RandomPlanner
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.signal_histogram import SignalHistogram
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.entropy import Entropy
from callbacks.signals.sepa import SEPA
from callbacks.tokens.gtpo import GTPO


def test_every_place_has_its_panel_and_the_axis_its_signal(fit, monkeypatch):
    drawn = []
    monkeypatch.setattr("callbacks.probes.signal_histogram.draw_distributions", lambda *call: drawn.append(call))
    monkeypatch.setattr("callbacks.probes.signal_histogram.publish_file", lambda *_: None)
    looks = [SignalHistogram(every_n_steps=2) for _ in range(4)]
    planners = [StrategicGrams(), looks[0], RandomPlanner(), looks[1]]
    fit(steps=3, stack=[GRPO(), Entropy(), *planners, ConstantLambda(), SEPA(), looks[2], SEPA(), looks[3], GTPO()])
    panels, label, _ = drawn[0]
    last = ["StrategicGrams", "RandomPlanner", "SEPA", "SEPA"]
    titles = [f"{place}: signal after {above}" for place, above in zip((4, 6, 9, 11), last)]
    assert [title for title, _ in panels] == titles
    assert label == "signal (Entropy)"
    assert [call[2].name for call in drawn] == ["step_000000.png", "step_000002.png"]


def test_a_picture_that_would_never_be_drawn_is_refused():
    with pytest.raises(ValueError, match="every_n_steps >= 1, got 0"):
        SignalHistogram(every_n_steps=0)
