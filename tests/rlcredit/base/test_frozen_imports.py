"""Imports without the garbage collector."""

import gc

import pytest

from rlcredit.base.frozen_imports import freeze_imports


@pytest.fixture(autouse=True)
def thawed():
    """Let later tests collect what these freeze."""
    yield
    gc.enable()
    gc.unfreeze()


def test_what_is_made_meanwhile_is_left_alone_by_every_collection():
    with freeze_imports():
        assert not gc.isenabled()
        made = []
        made.append(made)
    assert gc.isenabled()
    assert not any(each is made for each in gc.get_objects())  # only what collections go through
    assert gc.get_freeze_count() > 1


def test_a_failed_import_leaves_the_collector_on():
    with pytest.raises(ModuleNotFoundError), freeze_imports():
        import no_such_module  # noqa: F401
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with freeze_imports():
        made = [None]
    assert not gc.isenabled()
    assert any(each is made for each in gc.get_objects())
