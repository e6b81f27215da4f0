"""External tools of the catalogue, which this program executes."""

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from toolbus.connection import Connection, random_name
from toolbus.errors import ToolbusError
from toolbus.streams import KeptStream
from toolbus.tool.v1 import tool_call_service_pb2 as calls
from toolbus.tool.v1 import tool_call_service_pb2_grpc
from toolbus.tools import answer_call, answer_unless_over, in_thread, outcome_of


def _print_notice(problem: str) -> None:
    print(problem, file=sys.stderr)


def watch_tools(
    connection: Connection,
    tools: Mapping[str, Callable[..., Any]],
    max_in_flight: int = 0,
    on_notice: Callable[[str], None] = _print_notice,
) -> KeptStream:
    stub = tool_call_service_pb2_grpc.ToolCallServiceStub(connection.channel)
    request = calls.WatchToolCallsRequest(tools=list(tools), watcher_id=random_name(), max_in_flight=max_in_flight)
    running: set[str] = set()
    lock = threading.Lock()

    def answer(call_id: str, delivery_id: str) -> None:
        """The acknowledgement makes the call this program's own; refused, it is somebody else's."""
        taking = calls.AcknowledgeToolCallRequest(call_id=call_id, delivery_id=delivery_id)
        call = connection.send(stub.AcknowledgeToolCall, taking).call
        outcome = outcome_of(tools.get(call.tool), call.arguments_json)

        def submit(answer: dict[str, str]) -> object:
            result = calls.SubmitToolResultRequest(call_id=call_id, **answer)
            return connection.send(stub.SubmitToolResult, result)

        answer_call(outcome, submit)

    def execute(call_id: str, delivery_id: str) -> None:
        try:
            answer_unless_over(lambda: answer(call_id, delivery_id))
        except ToolbusError as error:
            on_notice(f"call {call_id}: {error}")
        finally:
            with lock:
                running.discard(call_id)

    def take(message: calls.WatchToolCallsResponse) -> None:
        kind = message.WhichOneof("update")
        if kind == "notice":
            on_notice(" · ".join([message.notice.problem, *message.notice.closest_names]))
        elif kind == "call":
            call_id = message.call.call.call_id
            with lock:
                is_running = call_id in running
                running.add(call_id)
            if not is_running:
                in_thread(execute, call_id, message.call.delivery_id)

    return KeptStream(connection, lambda: connection.stream(stub.WatchToolCalls, request), take)
