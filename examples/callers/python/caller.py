# /// script
# requires-python = ">=3.11"
# dependencies = ["grpcio>=1.85.1", "protobuf>=7.35.1"]
# ///
"""Opens a session, offers it a tool of this program, and lets an agent call it. On the way its stream is lost once.

Run it with `uv run examples/callers/python/caller.py A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.
"""

import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlparse

import grpc
from google.protobuf.duration_pb2 import Duration

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "gen" / "python"))

from toolbus.caller.v1 import caller_pb2  # noqa: E402
from toolbus.caller.v1 import caller_service_pb2 as caller_service  # noqa: E402
from toolbus.caller.v1 import caller_service_pb2_grpc as caller_grpc  # noqa: E402
from toolbus.content.v1 import content_pb2  # noqa: E402
from toolbus.run.v1 import run_pb2  # noqa: E402
from toolbus.run.v1 import run_service_pb2 as runs  # noqa: E402
from toolbus.run.v1 import run_service_pb2_grpc as runs_grpc  # noqa: E402
from toolbus.session.v1 import session_service_pb2 as sessions  # noqa: E402
from toolbus.session.v1 import session_service_pb2_grpc as sessions_grpc  # noqa: E402

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
PASSING = {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED}


class Desk:
    """The tools of this program in one session."""

    def __init__(self, channel: grpc.Channel, session_id: str, metadata: list[tuple[str, str]]) -> None:
        self.callers = caller_grpc.CallerServiceStub(channel)
        self.session_id = session_id
        self.metadata = metadata
        self.answers: dict[str, str] = {}
        self.was_lost = False
        self.is_done = False

    def declare(self) -> None:
        tool = caller_pb2.CallerTool(
            name="find_order", description="Tells where an order is", input_schema_json=json.dumps(SCHEMA)
        )
        declaration = caller_pb2.CallerDeclaration(caller_id="desk", tools=[tool])
        request = caller_service.DeclareToolsRequest(session_id=self.session_id, declaration=declaration)
        self.callers.DeclareTools(request, metadata=self.metadata)

    def serve(self) -> None:
        """Attaches again whenever the stream is lost, under the same name, so that what is open comes again."""
        attach = caller_service.WatchCallerRequest(
            session_id=self.session_id, stream_id=str(uuid.uuid4()), reconnect_grace=Duration(seconds=10)
        )
        while not self.is_done:
            self.stream = self.callers.WatchCaller(attach, metadata=self.metadata)
            try:
                for message in self.stream:
                    kind = message.WhichOneof("event")
                    print(kind)
                    if kind == "request" and not self.was_lost:
                        self.was_lost = True
                        self.stream.cancel()  # stands for a network that fails here
                    elif kind == "request":
                        self.answer(message.request)
            except grpc.RpcError as error:
                if error.code() not in PASSING:
                    raise
                time.sleep(0.1)

    def answer(self, request: caller_pb2.CallerToolRequest) -> None:
        """The same request comes again when the stream was lost before it was answered: it is done once, by its id."""
        if request.request_id not in self.answers:
            found = {**json.loads(request.arguments_json), "state": "on its way"}
            self.answers[request.request_id] = json.dumps(found)
        answer = caller_service.RespondRequest(
            session_id=self.session_id,
            request_id=request.request_id,
            submission_id=request.request_id,
            result_json=self.answers[request.request_id],
        )
        self.callers.Respond(answer, metadata=self.metadata)

    def close(self) -> None:
        self.is_done = True
        self.stream.cancel()


def main(order: str) -> int:
    address = urlparse(os.environ.get("TOOLBUS_URL", "http://127.0.0.1:7480")).netloc
    metadata = [("authorization", f"Bearer {os.environ['TOOLBUS_API_KEY']}")]
    with grpc.insecure_channel(address) as channel:
        opened = sessions_grpc.SessionServiceStub(channel).CreateSession(
            sessions.CreateSessionRequest(agent="clerk"), metadata=metadata
        )
        desk = Desk(channel, opened.session.id, metadata)
        desk.declare()
        serving = threading.Thread(target=desk.serve)
        serving.start()

        service = runs_grpc.RunServiceStub(channel)
        message = runs.InputMessage(role=run_pb2.ROLE_USER, content=[content_pb2.ContentPart(text=order)])
        request = runs.CreateRunRequest(
            session_id=opened.session.id, agent="clerk", input=[runs.InputItem(message=message)]
        )
        created = service.CreateRun(request, metadata=metadata)
        watch = runs.WatchRunRequest(run_id=created.run.id, from_sequence=0)
        updates = service.WatchRun(watch, metadata=metadata)
        ended = next(update.event.ended for update in updates if update.event.WhichOneof("event") == "ended")
        desk.close()
        serving.join()
        print(f"the run ended: {run_pb2.RunState.Name(ended.state)}: {ended.output_text}")
        is_right = ended.state == run_pb2.RUN_STATE_COMPLETED and f"{order} is on its way" in ended.output_text
        return 0 if desk.was_lost and is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "A-17"))
