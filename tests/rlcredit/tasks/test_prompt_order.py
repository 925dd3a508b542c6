import pytest

from rlcredit.tasks.prompt_order import PromptOrder


def test_seeds_order_the_data():
    orders = [PromptOrder(size=64, batch=8, seed=seed, step=lambda: 0).draw_numbers(0) for seed in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]


def drawn(steps, start=0, **how):
    order = PromptOrder(**{"size": 11, "batch": 4, "seed": 0, "step": lambda: start, **how})
    return [order.draw_numbers(step) for step in range(start, start + steps)]


def test_an_epoch_holds_no_prompt_twice():
    first = drawn(2)
    assert len({number for batch in first for number in batch}) == 8


def test_the_order_is_a_function_of_seed_and_epoch():
    assert drawn(6) == drawn(6)
    assert drawn(2) != drawn(2, start=2)
    assert drawn(2) != drawn(2, seed=1)


@pytest.mark.parametrize("stop", range(7))
def test_iteration_continues_where_the_trainer_stands(stop):
    # Whatever the step at which a run stops, what follows is what would have followed.
    def walked(start, steps):
        batches, step = [], start
        while len(batches) < steps:
            for batch in PromptOrder(11, 4, 0, step=lambda at=step: at):
                batches.append(batch)
                step += 1
        return batches[:steps]

    assert walked(0, 7)[stop:] == walked(stop, 7 - stop)


def test_processes_share_a_batch_without_overlap():
    whole = drawn(2)
    shares = [drawn(2, rank=rank, world=2) for rank in (0, 1)]
    assert [sorted(a + b) for a, b in zip(*shares)] == [sorted(batch) for batch in whole]


@pytest.mark.parametrize(
    ("wrong", "message"), [({"batch": 12}, "there are 11 training prompts"), ({"world": 3}, "cannot share evenly")]
)
def test_impossible_batches_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        drawn(1, **wrong)
