"""How a command of rlcredit ends: its exit status, and the exceptions that choose one."""

FINISHED = 0
FAILED = 1
"""An unexpected error; the traceback says which."""
REFUSED = 2
"""What was asked for cannot be done; nothing has been begun."""
NOT_FINITE = 3
"""A loss, gradient, reward, advantage or weight is not a number; the batch is kept."""
NO_STORAGE = 4
"""No checkpoint can be written; training on would lose what it learns."""
TWO_POLICIES = 5
"""Sampler and trainer disagree about the policy; no update that is made of both would mean anything."""
NO_ENGINE = 6
"""The engine no longer answers prompts; the last whole step is kept."""

NO_COMPANION = 7
"""Another process of the run has ended or stands still; the last checkpoint is kept."""


class RunStopped(Exception):  # noqa: N818  (not every end is an error)
    """Training cannot go on, for a reason that a message can name: no traceback, one sentence, an exit status.

    Attributes:
        status: Status that the process exits with.

    """

    status = FAILED


class NotFinite(RunStopped):
    """Numbers that no update can be made of."""

    status = NOT_FINITE


class PolicyMismatch(RunStopped):
    """What was sampled is not what would be trained."""

    status = TWO_POLICIES


class EngineUnavailable(RunStopped):
    """The engine does not answer prompts."""

    status = NO_ENGINE


class ProcessLost(RunStopped):
    """A run of several processes has lost one."""

    status = NO_COMPANION


class StorageUnavailable(RunStopped):
    """No checkpoint can be written."""

    status = NO_STORAGE


def signal_exit_status(number: int) -> int:
    """Return the exit status of a process that a signal has ended, as a shell counts it.

    Example:
        >>> signal_exit_status(2), signal_exit_status(15)
        (130, 143)

    """
    return 128 + number
