import torch

from callbacks.signals.shuffled_signal import ShuffledSignal, shuffled_signal


def test_the_signals_of_a_completion_change_places_and_gaps_and_padding_stay():
    signal = torch.tensor([[1.0, 8.0, 2.0, 3.0, 9.0], [4.0, 5.0, 7.0, 7.0, 7.0]])
    mask = torch.tensor([[True, False, True, True, False], [True, True, False, False, False]])
    draws = torch.tensor([[0.9, 0.1, 0.5, 0.2, 0.3], [0.4, 0.6, 0.1, 0.1, 0.1]])  # by place among sampled tokens
    assert shuffled_signal(signal, draws, mask).tolist() == [[2.0, 8.0, 3.0, 1.0, 9.0], [4.0, 5.0, 7.0, 7.0, 7.0]]


def test_every_completion_keeps_its_signals_and_every_step_has_an_order_of_its_own(rollout):
    old_signal, orders = rollout.signal, []
    for step in (3, 3, 4):
        rollout.step, rollout.signal = step, old_signal
        metrics = ShuffledSignal().assign(rollout)
        assert -1 <= float(metrics["correlation"]) < 1
        for row, mask in enumerate(rollout.mask):
            assert torch.equal(rollout.signal[row, mask].sort().values, old_signal[row, mask].sort().values)
        orders.append(rollout.signal)
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])
