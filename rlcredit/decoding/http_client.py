"""Requests to servers: many at once, retried if a connection fails, with one message if a server is dead."""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlcredit.base.exit_status import EngineUnavailable
from rlcredit.config.json_shapes import shorten_repr

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
"""Seconds in which a server takes a connection, or is asked again."""

SERVER_RETRY_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds before a server is asked again; then the last of them each time."""

_BUSY_STATUS, _FAULT_STATUS = 429, 500

MAX_ANSWER_BYTES = 2**16
"""Bytes of an answer, unless a request says otherwise."""


class RetryingClient:
    """Post JSON to servers while an event loop runs.

    A request may arrive twice: it is sent again if its answer was lost.

    Args:
        connections: Connections open at a time.
        timeout: Seconds for one whole answer, however it drips.
        patience: Seconds for which a server that fails is asked again.

    """

    def __init__(self, connections: int, timeout: float, patience: float) -> None:
        self.connections, self.timeout, self.patience = connections, timeout, patience

    async def __aenter__(self) -> "RetryingClient":
        import aiohttp  # noqa: PLC0415

        self.failures = (aiohttp.ClientError, TimeoutError, OSError)
        self.turns = asyncio.Semaphore(self.connections)  # to wait for a connection is no part of an answer's time
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.connections),
            timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=CONNECT_SECONDS),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    async def post(self, url: str, body: Mapping[str, Any], largest: int = MAX_ANSWER_BYTES) -> tuple[int, Any]:
        """Return status and content of an answer; the server's error where it refuses.

        Args:
            url: Address.
            body: Content of the request.
            largest: Most bytes that the answer may have.

        Raises:
            EngineUnavailable: there was no answer within the patience, or one that is too large.

        """
        failing_since, reason = None, ""
        for attempt in itertools.count():
            try:
                async with self.turns, self.session.post(url, json=dict(body)) as response:
                    status, content = response.status, _parse_answer(await _read_answer(response, largest))
                if status < _FAULT_STATUS and status != _BUSY_STATUS:
                    return status, content
                reason = f"status {status}: {summarise_server_error(content)}"
            except self.failures as error:
                reason = f"{type(error).__name__} {str(error) or f'after {self.timeout:g} seconds'}"
            time_now = time.monotonic()
            failing_since = time_now if failing_since is None else failing_since
            if time_now - failing_since >= self.patience:
                break
            await asyncio.sleep(SERVER_RETRY_PAUSES[min(attempt, len(SERVER_RETRY_PAUSES) - 1)])
        raise EngineUnavailable(
            f"{url}: no answer, tried for {self.patience:g} seconds ({reason}). Look at the server's own log and start "
            "it again."
        )


def summarise_server_error(content: Any) -> str:
    """Return a short form of a server's error message."""
    error = content.get("error", content) if isinstance(content, dict) else content
    message = error.get("message", error) if isinstance(error, dict) else error
    return (message if isinstance(message, str) else shorten_repr(message))[:500]


async def _read_answer(response: "aiohttp.ClientResponse", largest: int) -> bytes:
    """Return the bytes of an answer, and read no more of one that is too large."""
    try:
        await response.content.readexactly(largest + 1)
    except asyncio.IncompleteReadError as whole:
        return whole.partial
    raise EngineUnavailable(f"{response.url} sends more than {largest} bytes. Look at the server's own log.")


def _parse_answer(content: bytes) -> Any:
    """Return the content of JSON, or else a text."""
    text = content.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
