from studies.machinery.bench_stack import make_random_rollout, measure_operator_seconds


def test_the_six_operators_are_timed_on_a_batch_that_plans():
    rollout = make_random_rollout(rows=16, width=300, device="cpu")
    assert list(measure_operator_seconds(rollout, repetitions=1)) == [
        "MaxRL",
        "StrategicGrams",
        "LinearLambda",
        "SEPA",
        "GTPO",
        "HICRA",
    ]
    assert rollout.plan_mask.any()
    assert rollout.sepa_lambda == 0.5
