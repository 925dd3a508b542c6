from studies.measured_credit import tabulate_thresholds

STEPS = (0, 10, 20)


def found(**runs):
    rows = [
        {"condition": name, "seed": str(seed), "step": str(step), "val/pass_at_1": str(value)}
        for name, curves in runs.items()
        for seed, curve in enumerate(curves)
        for step, value in zip(STEPS, curve, strict=True)
    ]
    return tabulate_thresholds.group_pass_curves(rows[::-1])


def test_steps_to_a_level_are_compared_as_means_of_the_same_seeds():
    slow, fast = [(0.2, 0.4, 0.6), (0.2, 0.4, 0.6)], [(0.2, 0.6, 0.8), (0.2, 0.6, 0.8)]
    (row,) = tabulate_thresholds.make_threshold_table(found(flat=slow, measured=fast), "flat", [0.4]).rows
    assert row == ["0.40", "10", "5", "0.50 (0.50 to 0.50)"]


def test_runs_that_never_get_there_are_counted_and_not_averaged():
    runs = found(flat=[(0.2, 0.4, 0.45), (0.2, 0.4, 0.6)], measured=[(0.2, 0.6, 0.8), (0.2, 0.6, 0.8)])
    (row,) = tabulate_thresholds.make_threshold_table(runs, "flat", [0.5]).rows
    assert row == ["0.50", "1 of 2 runs", "8", "not known"]


def test_a_ratio_that_may_be_anything_has_no_interval():
    runs = found(flat=[(0.5, 0.6, 0.6), (0.2, 0.4, 0.6)], measured=[(0.2, 0.6, 0.8), (0.2, 0.6, 0.8)])
    (row,) = tabulate_thresholds.make_threshold_table(runs, "flat", [0.5]).rows
    assert row == ["0.50", "8", "8", "1.00"]
