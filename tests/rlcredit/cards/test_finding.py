"""Numbers with their intervals."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from rlcredit.cards.finding import Finding, jackknife_estimate
from rlcredit.config.stored_records import make_record_adapter, parse_record


def test_the_interval_of_a_mean_is_students():
    values = np.array([0.2, 0.5, 0.4, 0.7])
    found = jackknife_estimate(lambda chosen: values[chosen].mean(), len(values))
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx((values.mean(), max(0, low), high))


def test_an_interval_ends_where_values_end():
    values = np.array([0.0, 0.0, 1.0, 1.0])
    found = jackknife_estimate(lambda chosen: values[chosen].mean(), len(values))
    assert (found["low"], found["high"]) == (0, 1)


def test_two_parts_have_no_interval():
    assert jackknife_estimate(lambda chosen: float(len(chosen)), 2) == {"estimate": 2.0}


def test_what_is_not_there_stays_away_in_json():
    found = Finding("angle", "angle", 3.0, "degrees", sentence="It turns.")
    text = make_record_adapter(Finding).dump_json(found)
    assert json.loads(text)["low"] is None
    again = parse_record(text.decode(), Finding)
    assert math.isnan(again.low)
    assert again.interval is None
    assert (again.name, again.estimate, again.sentence) == ("angle", 3.0, "It turns.")
