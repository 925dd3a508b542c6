"""Code of somebody's own that ends the process."""

import os

import pytest

from rlcredit.base.process_end import catch_process_end, end_process


def test_an_end_is_an_exception_and_is_an_end_again_afterwards():
    with pytest.raises(SystemExit, match=r"^os._exit\(0\)$"), catch_process_end():
        os._exit(0)
    assert os._exit is end_process


def test_a_name_that_was_imported_meanwhile_is_caught_too():
    with catch_process_end():
        from os import _exit

        with pytest.raises(SystemExit, match=r"^os._exit\(3\)$"):
            _exit(3)


def test_a_fork_of_the_process_ends_with_its_own_status():
    with catch_process_end():
        child = os.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_rlcredit_itself_still_ends_the_process():
    child = os.fork()
    if not child:
        with catch_process_end():
            end_process(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
