# /// script
# requires-python = ">=3.11"
# dependencies = ["grpcio>=1.85.1", "protobuf>=7.35.1"]
# ///
"""Lists an agent's tools, calls one, and watches a run: gRPC through the gateway, with the generated stubs.

Run it with `uv run examples/clients/python/client.py`, the suite's address in TOOLBUS_URL and a key, if the gateway
wants one, in TOOLBUS_API_KEY.
"""

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlparse

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "gen" / "python"))

from toolbus.content.v1 import content_pb2  # noqa: E402
from toolbus.run.v1 import run_pb2  # noqa: E402
from toolbus.run.v1 import run_service_pb2 as runs  # noqa: E402
from toolbus.run.v1 import run_service_pb2_grpc as runs_grpc  # noqa: E402
from toolbus.session.v1 import session_service_pb2 as sessions  # noqa: E402
from toolbus.session.v1 import session_service_pb2_grpc as sessions_grpc  # noqa: E402
from toolbus.tool.v1 import tool_service_pb2 as tool_service  # noqa: E402
from toolbus.tool.v1 import tool_service_pb2_grpc as tool_service_grpc  # noqa: E402


def main(text: str) -> int:
    address = urlparse(os.environ.get("TOOLBUS_URL", "http://127.0.0.1:7480")).netloc
    key = os.environ.get("TOOLBUS_API_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with grpc.insecure_channel(address) as channel:
        tools = tool_service_grpc.ToolServiceStub(channel)
        for entry in tools.ListTools(tool_service.ListToolsRequest(agent="demo"), metadata=metadata).tools:
            print(f"{entry.model_name:32} {entry.tool.description.splitlines()[0] if entry.tool.description else ''}")

        opened = sessions_grpc.SessionServiceStub(channel).CreateSession(
            sessions.CreateSessionRequest(agent="demo"), metadata=metadata
        )
        call = tool_service.CallToolRequest(
            session_id=opened.session.id, name="qr", arguments_json=json.dumps({"text": text})
        )
        events = tools.CallTool(call, metadata=metadata)
        result = next(event.result for event in events if event.WhichOneof("event") == "result")
        print("qr answered:", json.loads(result.output_json)["text"])

        service = runs_grpc.RunServiceStub(channel)
        message = runs.InputMessage(role=run_pb2.ROLE_USER, content=[content_pb2.ContentPart(text=text)])
        created = service.CreateRun(
            runs.CreateRunRequest(agent="demo", input=[runs.InputItem(message=message)]), metadata=metadata
        )
        ended = None
        whole = runs.WatchRunRequest(run_id=created.run.id, from_sequence=0)
        for update in service.WatchRun(whole, metadata=metadata):
            print(f"{update.event.sequence:3} {update.event.WhichOneof('event')}")
            if update.event.WhichOneof("event") == "ended":
                ended = update.event.ended
        print(f"the run ended: {run_pb2.RunState.Name(ended.state)}: {ended.output_text}")
        return 0 if ended.state == run_pb2.RUN_STATE_COMPLETED and text in ended.output_text else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "hello from Python"))
