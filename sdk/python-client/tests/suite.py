"""A suite of one run, which is as a test needs it."""

import queue
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import status_pb2
from grpc_status.rpc_status import to_status
from toolbus import Toolbus
from toolbus.caller.v1 import caller_pb2, caller_service_pb2_grpc
from toolbus.caller.v1 import caller_service_pb2 as callers
from toolbus.error.v1 import error_pb2
from toolbus.run.v1 import run_event_pb2, run_pb2, run_service_pb2_grpc
from toolbus.run.v1 import run_service_pb2 as runs
from toolbus.session.v1 import session_service_pb2 as sessions
from toolbus.session.v1 import session_service_pb2_grpc
from toolbus.tool.v1 import tool_call_service_pb2 as calls
from toolbus.tool.v1 import tool_call_service_pb2_grpc


class Suite(
    run_service_pb2_grpc.RunServiceServicer,
    tool_call_service_pb2_grpc.ToolCallServiceServicer,
    caller_service_pb2_grpc.CallerServiceServicer,
    session_service_pb2_grpc.SessionServiceServicer,
):
    """Its run waits for the outputs of its calls, and ends with them."""

    def __init__(self) -> None:
        self.calls = 1
        self.outputs: list[runs.ToolOutput] = []
        self.end_reason: Any = run_pb2.RUN_END_REASON_UNSPECIFIED
        self.refusal: str | None = None
        self.takes_results = True
        self.key: str | bytes = ""
        self.requests: queue.Queue[caller_pb2.CallerToolRequest] | None = None
        self.responses: queue.Queue[callers.RespondRequest] = queue.Queue()
        self.answered = threading.Event()
        self.watched = threading.Event()
        self.left = threading.Event()
        as_a_gateway_does = [("grpc.http2.min_ping_interval_without_data_ms", 0), ("grpc.http2.max_ping_strikes", 0)]
        self._server = grpc.server(ThreadPoolExecutor(max_workers=16), options=as_a_gateway_does)
        run_service_pb2_grpc.add_RunServiceServicer_to_server(self, self._server)
        tool_call_service_pb2_grpc.add_ToolCallServiceServicer_to_server(self, self._server)
        caller_service_pb2_grpc.add_CallerServiceServicer_to_server(self, self._server)
        session_service_pb2_grpc.add_SessionServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def __enter__(self) -> "Suite":
        return self

    def __exit__(self, *_: object) -> None:
        self.answered.set()
        self._server.stop(None).wait()

    def toolbus(self, port: int | None = None, **options: Any) -> Toolbus:
        return Toolbus(f"http://127.0.0.1:{port or self.port}", api_key="key", **options)

    def CreateRun(self, request: runs.CreateRunRequest, context: grpc.ServicerContext) -> runs.CreateRunResponse:
        self.key = dict(context.invocation_metadata())["authorization"]
        return runs.CreateRunResponse(run=run_pb2.Run(id="run", session_id="session"))

    def GetRun(self, request: runs.GetRunRequest, context: grpc.ServicerContext) -> runs.GetRunResponse:
        if self.answered.is_set():
            ended = run_pb2.Run(id="run", state=run_pb2.RUN_STATE_COMPLETED, end_reason=self.end_reason)
            return runs.GetRunResponse(run=ended)
        calls = [run_pb2.FunctionCall(call_id=f"call{n}", name="find_order") for n in range(self.calls)]
        return runs.GetRunResponse(run=run_pb2.Run(id="run", required_calls=calls))

    def SubmitOutputs(self, request: runs.SubmitOutputsRequest, context: grpc.ServicerContext) -> Any:
        if self.refusal is not None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refusal)
        if not self.takes_results and request.outputs[0].HasField("result_json"):
            detail = any_pb2.Any()
            detail.Pack(error_pb2.ErrorDetail(reason=error_pb2.REASON_MESSAGE_TOO_LARGE))
            context.abort_with_status(to_status(status_pb2.Status(code=3, message="too large", details=[detail])))
        self.outputs.extend(request.outputs)
        if len(self.outputs) == self.calls:
            self.answered.set()
        return runs.SubmitOutputsResponse()

    def WatchRun(self, request: runs.WatchRunRequest, context: grpc.ServicerContext) -> Iterator[runs.WatchRunResponse]:
        self.watched.set()
        while context.is_active() and not self.answered.wait(0.05):
            pass
        yield runs.WatchRunResponse(event=run_event_pb2.RunEvent(sequence=1, ended=run_event_pb2.RunEnded()))

    def WatchToolCalls(
        self, request: calls.WatchToolCallsRequest, context: grpc.ServicerContext
    ) -> Iterator[calls.WatchToolCallsResponse]:
        context.add_callback(self.left.set)
        yield calls.WatchToolCallsResponse(notice=calls.WatchNotice(problem="there is no such tool"))
        while context.is_active() and not self.answered.wait(0.05):
            pass

    def CreateSession(self, request: Any, context: grpc.ServicerContext) -> sessions.CreateSessionResponse:
        return sessions.CreateSessionResponse()

    def DeclareTools(self, request: Any, context: grpc.ServicerContext) -> callers.DeclareToolsResponse:
        return callers.DeclareToolsResponse()

    def Respond(self, request: callers.RespondRequest, context: grpc.ServicerContext) -> callers.RespondResponse:
        self.responses.put(request)
        return callers.RespondResponse()

    def WatchCaller(self, request: Any, context: grpc.ServicerContext) -> Iterator[callers.WatchCallerResponse]:
        if self.requests is not None:
            requests, self.requests = self.requests, queue.Queue()  # all go to the first
            yield callers.WatchCallerResponse(attached=callers.CallerAttached())
            while context.is_active():
                try:
                    yield callers.WatchCallerResponse(request=requests.get(timeout=0.05))
                except queue.Empty:
                    pass
            return
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no more streams")
        yield callers.WatchCallerResponse()


class Cable:
    """The way to a port. Once it is cut, nothing passes over what was connected before, and no end is told."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cuts = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        cut, self._cuts = self._cuts, threading.Event()
        cut.set()

    def __enter__(self) -> "Cable":
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self._listener, *self._sockets]:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [client, server]
            for ends in ((client, server), (server, client)):
                threading.Thread(target=_carry, args=(*ends, self._cuts), daemon=True).start()


def _carry(source: socket.socket, target: socket.socket, cut: threading.Event) -> None:
    try:
        while data := source.recv(65_536):
            if not cut.is_set():
                target.sendall(data)
        if not cut.is_set():
            target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # either end may go at any time
