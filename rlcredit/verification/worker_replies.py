"""What a worker says: numbered frames of numbers and a text, bounded and never unpickled."""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

REPLY_HEADER = struct.Struct("<QIBII")
"""Number of the request, place in it, outcome, values that follow, bytes of text behind them."""

REPLY_VALUE = struct.Struct("<?d")
"""Whether there is a value, and the value."""

LONGEST_FAULT = 2000
"""Bytes of a fault."""

MOST_VALUES = 100_000
"""Values of a frame."""


class Outcome(IntEnum):
    """How a call has ended."""

    ANSWERED = 0
    RAISED = 1
    MISREAD = 2  # it returned what is no answer
    BROKEN = 3  # it has taken too long, or ended its process


class Reply(NamedTuple):
    """A worker's reply to a call.

    Attributes:
        values: A number or None for each thing that was asked about; empty where the call failed.
        fault: What is wrong, in words that go on after the name of the function; empty if nothing is.
        outcome: How the call has ended.

    """

    values: Sequence[float | None] = ()
    fault: str = ""
    outcome: Outcome = Outcome.ANSWERED


class ForgedReplyError(Exception):
    """Bytes that are no reply to the request."""


def pack_reply(number: int, place: int, reply: Reply) -> bytes:
    """Return a reply as a frame."""
    text = reply.fault.encode(errors="replace")[:LONGEST_FAULT]
    values = [REPLY_VALUE.pack(value is not None, value or 0.0) for value in reply.values]
    return b"".join([REPLY_HEADER.pack(number, place, reply.outcome, len(values), len(text)), *values, text])


def take_replies(buffer: bytearray, number: int) -> list[tuple[int, Reply]]:
    """Remove the whole frames from what was received, and return them with their places.

    Args:
        buffer: Bytes so far, changed in place; a part of a frame stays.
        number: Number of the request.

    Raises:
        ForgedReplyError: the frames have another number, or are none.

    Example:
        >>> received = bytearray(pack_reply(7, 0, Reply([0.5, None])) + b"rest")
        >>> take_replies(received, 7)[0][1].values, bytes(received)
        ([0.5, None], b'rest')

    """
    replies: list[tuple[int, Reply]] = []
    while len(buffer) >= REPLY_HEADER.size:
        reply_number, place, outcome, count, size = REPLY_HEADER.unpack_from(buffer)
        if reply_number != number or outcome > max(Outcome) or count > MOST_VALUES or size > LONGEST_FAULT:
            raise ForgedReplyError
        text, end = REPLY_HEADER.size + count * REPLY_VALUE.size, REPLY_HEADER.size + count * REPLY_VALUE.size + size
        if len(buffer) < end:
            break
        pairs = REPLY_VALUE.iter_unpack(buffer[REPLY_HEADER.size : text])
        values = [value if has_value else None for has_value, value in pairs]
        replies.append((place, Reply(values, buffer[text:end].decode(errors="replace"), Outcome(outcome))))
        del buffer[:end]
    return replies
