from rlcredit.tracking.headline import _make_held_out_tags, render_held_out_table

LOGGED = {"val/pass_at_1": 0.5, "val/pass_at_k": 0.75, "val/math/pass_at_1": 0.25, "val/entropy": 1.0}


def test_every_held_out_set_is_a_column_and_the_rest_is_left_out():
    assert render_held_out_table([(0, {"val/pass_at_1": 0.25}), (4, LOGGED)]).splitlines() == [
        "| held out after | pass_at_1 | pass_at_k | math/pass_at_1 |",
        "|---|---|---|---|",
        "| 0 steps | 0.250 |  |  |",
        "| 4 steps | 0.500 | 0.750 | 0.250 |",
    ]


def test_tags_are_named_so_that_mlflow_shows_them_as_columns():
    assert _make_held_out_tags(LOGGED) == {
        "held_out.pass_at_1": "0.5000",
        "held_out.pass_at_k": "0.7500",
        "held_out.math.pass_at_1": "0.2500",
    }
