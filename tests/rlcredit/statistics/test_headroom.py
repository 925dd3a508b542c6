"""The largest lead that a run could have."""

import pytest

from rlcredit.statistics.headroom import area_headroom

EARLY = [0, 1, 2, 4, 8, 16]
LATE = [0, 4, 8, 12, 16]


def test_the_best_run_has_its_start_and_then_the_best_score():
    # Two runs over 0, 25, 100: the leads at 25 and 100 are 0.2 and 0.1, and 0.0 and 0.1.
    room = area_headroom([0, 25, 100], [[0.5, 0.7, 0.8], [0.5, 0.9, 0.8]], best=0.9)
    areas = [(25 * 0.2 / 2 + 75 * 0.15) / 100, 75 * 0.05 / 100]
    assert (room.at_first, room.by_area) == (pytest.approx(0.1), pytest.approx(sum(areas) / 2))
    assert room.learnt == pytest.approx(0.4)


def test_an_early_mark_shows_room_that_a_late_one_hides():
    """A baseline that climbs from 0.2 to 0.9 in a quarter of its run has spent its room by a late first mark."""

    def height(place):
        return min(0.9, 0.2 + 0.7 * place / 4)

    late, early = (area_headroom(marks, [[height(mark) for mark in marks]], best=0.9) for marks in (LATE, EARLY))
    assert late.by_area == 0
    # At 1 and 2 it is 0.525 and 0.35 behind: (0.525 / 2 + (0.525 + 0.35) / 2 + 2 x 0.35 / 2) / 16.
    assert (early.at_first, early.by_area) == (pytest.approx(0.525), pytest.approx(1.05 / 16))
    assert (late.is_spent(0.02), early.is_spent(0.02)) == (True, False)


def test_where_nothing_was_learnt_the_best_score_is_no_ceiling():
    idle = area_headroom([0, 50, 100], [[0.30, 0.30, 0.30]], best=0.31)
    assert idle.by_area < 0.02
    assert not idle.is_spent(0.02)
