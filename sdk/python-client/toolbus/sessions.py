"""Conversations with an agent, and the tools of this program in them."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration

from toolbus.caller.v1 import caller_pb2, caller_service_pb2_grpc
from toolbus.caller.v1 import caller_service_pb2 as callers
from toolbus.connection import Connection, random_name
from toolbus.errors import ToolbusError
from toolbus.runs import Run, start_run
from toolbus.session.v1 import session_service_pb2 as sessions
from toolbus.session.v1 import session_service_pb2_grpc
from toolbus.streams import KeptStream
from toolbus.tools import Tool, answer_call, in_thread, outcome_of, schema_json

# More requests than are answered while one that was sent again is on its way.
MAX_OVER = 1_000


class _Requests:
    """What this program has offered in a session, and the requests that it executes and has executed.

    Each of its streams gets requests for all of it, and those that another one was executing."""

    def __init__(self) -> None:
        self.offered: dict[str, Tool] = {}
        self.running: set[str] = set()
        self.over: deque[str] = deque(maxlen=MAX_OVER)
        self.lock = threading.Lock()


class Attachment(KeptStream):
    """Tools of this program in a session, offered until it is closed. `names` are those that the agent sees."""

    names: list[str]


class Session:
    """A conversation, which goes on from run to run. As a context manager it is closed at the end."""

    def __init__(self, connection: Connection, session_id: str, agent: str) -> None:
        self.id = session_id
        self.agent = agent
        self._connection = connection
        self._stub = session_service_pb2_grpc.SessionServiceStub(connection.channel)
        self._requests = _Requests()

    def run(self, words: str, **options: Any) -> Run:
        return start_run(self._connection, words, session_id=self.id, **options)

    def offer(self, caller_id: str, tools: Sequence[Tool], *, grace_s: int = 10) -> Attachment:
        """The agent sees them as `<caller_id>_<name>`, in place of those that were offered before.

        Requests wait `grace_s` for this program when its connection breaks."""
        self._requests.offered.update({one.name: one for one in tools})
        return _attach(self._connection, self.id, caller_id, tools, self._requests, grace_s)

    def close(self) -> None:
        self._connection.send(self._stub.CloseSession, sessions.CloseSessionRequest(session_id=self.id))

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(connection: Connection, agent: str, session_id: str | None) -> Session:
    """A session of that id which this key has opened before is taken up again."""
    name = session_id or random_name()
    stub = session_service_pb2_grpc.SessionServiceStub(connection.channel)
    connection.send(stub.CreateSession, sessions.CreateSessionRequest(session_id=name, agent=agent))
    return Session(connection, name, agent)


def _attach(
    connection: Connection,
    session_id: str,
    caller_id: str,
    tools: Sequence[Tool],
    requests: _Requests,
    grace_s: int,
) -> Attachment:
    stub = caller_service_pb2_grpc.CallerServiceStub(connection.channel)
    declared = [
        caller_pb2.CallerTool(name=one.name, description=one.description, input_schema_json=schema_json(one))
        for one in tools
    ]
    declaration = caller_pb2.CallerDeclaration(caller_id=caller_id, tools=declared)
    declaring = callers.DeclareToolsRequest(session_id=session_id, declaration=declaration)
    names = list(connection.send(stub.DeclareTools, declaring).names)
    watching = callers.WatchCallerRequest(
        session_id=session_id, stream_id=random_name(), reconnect_grace=Duration(seconds=grace_s)
    )

    def execute(request: caller_pb2.CallerToolRequest) -> None:
        given = requests.offered.get(request.tool)
        outcome = outcome_of(given.run if given is not None else None, request.arguments_json)

        def submit(answer: dict[str, str]) -> object:
            response = callers.RespondRequest(session_id=session_id, request_id=request.request_id, **answer)
            return connection.send(stub.Respond, response)

        try:
            answer_call(outcome, submit)
        except ToolbusError:
            pass  # nobody was told: the request ends in its time, and is not executed again
        finally:
            with requests.lock:
                requests.running.discard(request.request_id)
                requests.over.append(request.request_id)

    def take(message: callers.WatchCallerResponse) -> None:
        kind = message.WhichOneof("event")
        if kind == "attached":
            stream.standing.set()
        elif kind == "request":
            # sent again when the stream broke before its answer was there, and may come when it is
            with requests.lock:
                request_id = message.request.request_id
                is_new = request_id not in requests.running and request_id not in requests.over
                if is_new:
                    requests.running.add(request_id)
            if is_new:
                in_thread(execute, message.request)

    ready = threading.Event()

    def take_when_ready(message: callers.WatchCallerResponse) -> None:
        ready.wait()
        take(message)

    stream = Attachment(
        connection, lambda: connection.stream(stub.WatchCaller, watching), take_when_ready, frozenset({"SESSION_CLOSED"})
    )
    stream.names = names
    ready.set()
    stream.when_standing()
    return stream
