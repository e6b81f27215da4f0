# /// script
# requires-python = ">=3.11"
# dependencies = ["grpcio>=1.85.1", "protobuf>=7.35.1"]
# ///
"""A provider of tools in Python: gRPC, with the generated stubs. `uv run provider.py [port]`"""

import asyncio
import json
import sys
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "gen" / "python"))

from toolbus.provider.v1 import provided_result_pb2 as provided_result  # noqa: E402
from toolbus.provider.v1 import tool_provider_service_pb2 as provider  # noqa: E402
from toolbus.provider.v1 import tool_provider_service_pb2_grpc as provider_grpc  # noqa: E402
from toolbus.tool.v1 import source_pb2 as source_pb  # noqa: E402
from toolbus.tool.v1 import tool_pb2 as tool  # noqa: E402


def numbers(**properties: object) -> str:
    return json.dumps({"type": "object", "properties": properties, "required": list(properties)})


TOOLS = [
    tool.Tool(
        name="count_primes",
        description="Counts the primes below a limit.",
        input_schema_json=numbers(limit={"type": "integer", "minimum": 0}),
        execution_type=tool.EXECUTION_TYPE_CUSTOM,
        effect=tool.EFFECT_PURE,
    ),
    tool.Tool(
        name="wait",
        description="Waits so many seconds, and tells how many are over.",
        input_schema_json=numbers(seconds={"type": "number", "minimum": 0}),
        execution_type=tool.EXECUTION_TYPE_CUSTOM,
    ),
]


def progress(done: float, total: float) -> provider.ExecuteToolResponse:
    return provider.ExecuteToolResponse(progress=tool.ToolProgress(progress=done, total=total))


def result(output: object, is_error: bool = False) -> provider.ExecuteToolResponse:
    result = provided_result.ProvidedResult(output_json=json.dumps(output), is_error=is_error)
    return provider.ExecuteToolResponse(result=result)


async def count_primes(limit: int):
    if limit > 1_000_000:
        yield result({"error": f"{limit} is more than 1000000"}, is_error=True)  # the model reads it
        return
    sieve = bytearray([1]) * max(limit, 2)
    for number in range(2, int(limit**0.5) + 1):
        sieve[number * number :: number] = bytes(len(sieve[number * number :: number]))
    yield progress(limit, limit)
    yield result({"primes": sum(sieve[2:])})


async def wait(seconds: float):
    for tenth in range(int(seconds * 10)):
        yield progress(tenth / 10, seconds)
        await asyncio.sleep(0.1)  # a canceled call ends here
    yield result({"waited": seconds})


class Provider(provider_grpc.ToolProviderServiceServicer):
    def offer(self, sources):
        return {
            "tools": [provider.OfferedTool(source=source.name, tool=one) for source in sources for one in TOOLS],
            "sources": [source_pb.SourceStatus(source=source.name, available=True) for source in sources],
        }

    async def GetProvidedTools(self, request, context):
        return provider.GetProvidedToolsResponse(**self.offer(request.sources))

    async def WatchProvidedTools(self, request, context):
        yield provider.WatchProvidedToolsResponse(**self.offer(request.sources))
        await asyncio.Event().wait()  # nothing changes for as long as somebody watches

    async def ExecuteTool(self, request, context):
        task, call = asyncio.current_task(), {"count_primes": count_primes, "wait": wait}[request.tool]
        context.add_done_callback(lambda _: task.cancelling() and print("a call was canceled", file=sys.stderr))
        async for event in call(**json.loads(request.arguments_json)):
            yield event


async def main(port: str) -> None:
    server = grpc.aio.server()
    provider_grpc.add_ToolProviderServiceServicer_to_server(Provider(), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print(f"ready at grpc://127.0.0.1:{bound}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "7491"))
