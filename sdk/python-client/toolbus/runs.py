"""Runs of agents."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from toolbus.connection import Connection, random_name
from toolbus.content.v1 import content_pb2
from toolbus.errors import Broken, RunError, ToolbusError, error_of
from toolbus.run.v1 import run_event_pb2, run_pb2, run_service_pb2_grpc
from toolbus.run.v1 import run_service_pb2 as runs
from toolbus.text import TextPiece, TextReader
from toolbus.tools import Tool, answer_call, in_thread, outcome_of, schema_json


@dataclass(frozen=True)
class RunResult:
    """`state` is `completed`, or `incomplete` when a limit ended it, which `end_reason` names. `run` is all that is stored."""

    run_id: str
    session_id: str
    state: str
    end_reason: str
    text: str
    run: run_pb2.Run


def _end_reason_of(run: run_pb2.Run) -> str:
    """A reason of a later release, which has no name here, is its number."""
    value = run_pb2.RunEndReason.DESCRIPTOR.values_by_number.get(run.end_reason)
    return str(run.end_reason) if value is None else value.name.removeprefix("RUN_END_REASON_")


class Run:
    """A run that goes on at the suite, whether or not anybody looks.

    `result()` waits for its end, iterating gives its updates from the first one on, `text()` what the model says. Each may be
    asked for, any number of times; a connection that breaks is opened again where it broke. Its functions are called while one
    of them is.
    """

    def __init__(self, connection: Connection, run: run_pb2.Run, functions: Sequence[Tool]) -> None:
        self.id = run.id
        self.session_id = run.session_id
        self._connection = connection
        self._stub = run_service_pb2_grpc.RunServiceStub(connection.channel)
        self._calls = FunctionCalls(connection, run.id, functions)

    def __iter__(self) -> Iterator[runs.WatchRunResponse]:
        return self._updates(include_deltas=True)

    def text(self) -> Iterator[TextPiece]:
        reader = TextReader()
        for update in self:
            yield from reader.pieces_of(update)

    def result(self) -> RunResult:
        for _ in self._updates(include_deltas=False):
            pass  # to its end, answering the calls of its functions
        run = self._connection.send(self._stub.GetRun, runs.GetRunRequest(run_id=self.id)).run
        state = run_pb2.RunState.Name(run.state).removeprefix("RUN_STATE_").lower()
        end_reason = _end_reason_of(run)
        if state not in ("completed", "incomplete"):
            message = run.error or f"the run ended: {end_reason}"
            raise RunError(message, run_id=self.id, state=state, end_reason=end_reason)
        return RunResult(self.id, self.session_id, state, end_reason, run.output_text, run)

    def cancel(self, reason: str = "") -> None:
        self._connection.send(self._stub.CancelRun, runs.CancelRunRequest(run_id=self.id, reason=reason))

    def _updates(self, *, include_deltas: bool) -> Iterator[runs.WatchRunResponse]:
        self._calls.open()
        place = Place()
        open_calls: list[Any] = []

        def open_stream() -> Iterator[runs.WatchRunResponse]:
            request = runs.WatchRunRequest(run_id=self.id, include_deltas=include_deltas, **place.next())
            call = self._connection.stream(self._stub.WatchRun, request)
            open_calls[:] = [call]
            with self._calls.ending(call):
                yield from call
            if not place.has_ended:
                raise Broken()

        try:
            for update in self._connection.resumed(open_stream, self._connection.patience_s):
                place.take(update)
                if update.WhichOneof("update") == "event":
                    self._calls.see(update.event)
                yield update
        except grpc.RpcError as error:
            raise self._calls.failure or error_of(error) from error
        finally:
            for call in open_calls:
                call.cancel()  # a stream that is left would go on


class Place:
    """Where a reader of a run stands, to go on there when the stream breaks."""

    def __init__(self) -> None:
        self.has_ended = False
        self._from_sequence = 0
        self._after_delta: runs.DeltaCursor | None = None

    def next(self) -> dict[str, Any]:
        return {"from_sequence": self._from_sequence, "after_delta": self._after_delta}

    def take(self, update: runs.WatchRunResponse) -> None:
        kind = update.WhichOneof("update")
        if kind == "delta":
            delta = update.delta
            self._after_delta = runs.DeltaCursor(turn=delta.turn, attempt=delta.attempt, index=delta.index)
        elif kind == "replaced":
            text = update.replaced
            last = text.delta_count - 1
            self._after_delta = (
                runs.DeltaCursor(turn=text.turn, attempt=text.attempt, index=last) if last >= 0 else None
            )
        elif kind == "gap":
            self._from_sequence = update.gap.last_sequence + 1
        elif kind == "event":
            self._from_sequence = update.event.sequence + 1
            event = update.event.WhichOneof("event")
            if event == "turn_committed":
                self._after_delta = None
            elif event == "ended":
                self.has_ended = True


class FunctionCalls:
    """The calls of a run that this program answers by its functions, each once.

    What was answered before this program came to the run, or is not wanted any more, is not begun."""

    def __init__(self, connection: Connection, run_id: str, functions: Sequence[Tool]) -> None:
        self.failure: ToolbusError | None = None
        self._connection = connection
        self._run_id = run_id
        self._seen: int | None = None
        self._functions = {given.name: given for given in functions}
        self._begun: set[str] = set()
        self._readers: list[Any] = []
        self._lock = threading.Lock()
        self._stub = run_service_pb2_grpc.RunServiceStub(connection.channel)

    def open(self) -> None:
        if self._functions and self._seen is None:
            run = self._connection.send(self._stub.GetRun, runs.GetRunRequest(run_id=self._run_id)).run
            self._seen = run.last_sequence
            self._begin(run.required_calls)

    def see(self, event: run_event_pb2.RunEvent) -> None:
        if self._seen is None or event.sequence <= self._seen:
            return
        kind = event.WhichOneof("event")
        if kind == "parked":
            self._begin(event.parked.calls)
        elif kind == "turn_committed":
            ours = set(event.turn_committed.client_call_ids)
            items = [item.function_call for item in event.turn_committed.items if item.HasField("function_call")]
            self._begin([call for call in items if call.call_id in ours])

    @contextmanager
    def ending(self, reader: Any) -> Iterator[None]:
        """While it is read, the reader ends with what keeps an answer from being given."""
        self._readers.append(reader)
        if self.failure is not None:
            reader.cancel()
        try:
            yield
        finally:
            self._readers.remove(reader)

    def _begin(self, calls: Sequence[run_pb2.FunctionCall]) -> None:
        with self._lock:
            fresh = [call for call in calls if call.call_id not in self._begun and call.name in self._functions]
            self._begun.update(call.call_id for call in fresh)
        for call in fresh:
            in_thread(self._answer, call)

    def _answer(self, call: run_pb2.FunctionCall) -> None:
        outcome = outcome_of(self._functions[call.name].run, call.arguments_json)

        def submit(given: dict[str, str]) -> object:
            output = runs.ToolOutput(call_id=call.call_id, **given)
            request = runs.SubmitOutputsRequest(run_id=self._run_id, outputs=[output])
            return self._connection.send(self._stub.SubmitOutputs, request)

        try:
            answer_call(outcome, submit)
        except ToolbusError as error:
            self.failure = error
            for reader in list(self._readers):
                reader.cancel()


def start_run(
    connection: Connection,
    words: str,
    *,
    agent: str = "",
    session_id: str = "",
    functions: Sequence[Tool] = (),
    instructions: str = "",
    idempotency_key: str | None = None,
    options: run_pb2.RunOptions | None = None,
) -> Run:
    given = run_pb2.RunOptions()
    if options is not None:
        given.CopyFrom(options)
    if instructions:
        given.instructions = instructions
    for one in functions:
        given.function_tools.add(name=one.name, description=one.description, input_schema_json=schema_json(one))
    message = runs.InputMessage(role=run_pb2.ROLE_USER, content=[content_pb2.ContentPart(text=words)])
    request = runs.CreateRunRequest(
        session_id=session_id,
        agent=agent,
        input=[runs.InputItem(message=message)],
        options=given,
        idempotency_key=idempotency_key or random_name(),
    )
    stub = run_service_pb2_grpc.RunServiceStub(connection.channel)
    return Run(connection, connection.send(stub.CreateRun, request).run, functions)


def take_up_run(connection: Connection, run_id: str, functions: Sequence[Tool]) -> Run:
    stub = run_service_pb2_grpc.RunServiceStub(connection.channel)
    return Run(connection, connection.send(stub.GetRun, runs.GetRunRequest(run_id=run_id)).run, functions)
