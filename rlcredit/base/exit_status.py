"""How a command of rlcredit ends: its exit status, and the exceptions that choose one."""

FINISHED = 0
FAILED = 1
"""An unexpected error; the traceback says which."""
REFUSED = 2
"""The request cannot be carried out; nothing has been started."""
NOT_FINITE = 3
"""A loss, gradient, reward, advantage or weight is not finite; the batch is kept."""
NO_STORAGE = 4
"""No checkpoint can be written; further training would be lost."""
TWO_POLICIES = 5
"""Sampler and trainer disagree about the policy, so no update from both would mean anything."""
NO_ENGINE = 6
"""The engine no longer answers prompts; the last whole step is kept."""

NO_COMPANION = 7
"""Another process of the run has ended or hangs; the last checkpoint is kept."""


class RunStopped(Exception):  # noqa: N818  (not every end is an error)
    """Stop training for a known reason: one sentence and an exit status, no traceback.

    Attributes:
        status: Status that the process exits with.
        can_go_on: Whether the run can be continued as it is, once the cause is gone.
        advice: Sentence that says how, from whoever knows what the run has kept; empty if nobody does.

    """

    status = FAILED
    can_go_on = False
    advice = ""

    def __str__(self) -> str:
        """Return the sentence, and the advice behind it."""
        return f"{super().__str__()} {self.advice}".rstrip()


class NotFinite(RunStopped):
    """Values that are not finite, from which no update can be made."""

    status = NOT_FINITE


class PolicyMismatch(RunStopped):
    """The policy that was sampled is not the one that would be trained."""

    status = TWO_POLICIES


class EngineUnavailable(RunStopped):
    """The engine does not answer prompts."""

    status = NO_ENGINE
    can_go_on = True


class ProcessLost(RunStopped):
    """A run of several processes has lost one."""

    status = NO_COMPANION


class StorageUnavailable(RunStopped):
    """No checkpoint can be written."""

    status = NO_STORAGE
    can_go_on = True


def signal_exit_status(number: int) -> int:
    """Return the exit status that a shell gives a process ended by a signal.

    Example:
        >>> signal_exit_status(2), signal_exit_status(15)
        (130, 143)

    """
    return 128 + number
