"""Cases of which the fast tests take only some."""

import pytest


def mark_others_slow(cases, fast=1):
    """Return the cases of a parametrised test, all but the first ones marked slow."""
    cases = list(cases)
    return [*cases[:fast], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[fast:])]
