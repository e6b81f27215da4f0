"""A suite, as a program outside uses it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc

from toolbus.connection import Connection
from toolbus.runs import Run, start_run, take_up_run
from toolbus.sessions import Session, open_session
from toolbus.spaces import Space, open_space
from toolbus.streams import KeptStream
from toolbus.tools import Tool
from toolbus.watchers import watch_tools


class Toolbus:
    """Nothing is sent before the first request. `TOOLBUS_URL` and `TOOLBUS_API_KEY` are taken where nothing is given."""

    def __init__(self, url: str | None = None, *, api_key: str | None = None, patience_s: float = 15.0) -> None:
        self._connection = Connection(url, api_key, patience_s)

    @property
    def channel(self) -> grpc.Channel:
        """For stubs of the contract, where the library has no words. It sends no key, and repeats nothing."""
        return self._connection.channel

    def run(self, agent: str, words: str, **options: Any) -> Run:
        """Starts a run of an agent, in a session of its own.

        Options: `functions`, `instructions`, `idempotency_key`, and `options` for all else that the contract has."""
        return start_run(self._connection, words, agent=agent, **options)

    def take_up(self, run_id: str, *, functions: Sequence[Tool] = ()) -> Run:
        """Takes up a run that was started before, as after a restart of the program."""
        return take_up_run(self._connection, run_id, functions)

    def open_session(self, agent: str, *, session_id: str | None = None) -> Session:
        return open_session(self._connection, agent, session_id)

    def open_space(self, space_id: str) -> Space:
        return open_space(self._connection, space_id)

    def watch(self, tools: Mapping[str, Callable[..., Any]], **options: Any) -> KeptStream:
        """Executes calls of external tools, until it is closed. Options: `max_in_flight`, `on_notice`."""
        return watch_tools(self._connection, tools, **options)
