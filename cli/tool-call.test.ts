import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { type CallToolRequest, ToolRouterService } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import type { Connection } from "./connection.ts";
import { resultOfToolCall } from "./tool-call.ts";

const call = { sessionId: "s", name: "tool", argumentsJson: "{}" };
const silence = "nothing was heard of the call for 3000 ms";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A gateway whose routers are lost in mid-call so many times. */
function openGateway(lost: number) {
  const requests: CallToolRequest[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(ToolRouterService, {
      async *callTool(request) {
        requests.push(request);
        if (requests.length <= lost) throw new ConnectError(silence, Code.Unavailable);
        yield { event: { case: "result", value: { outputJson: '"done"' } } };
      },
    });
  });
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  return { connection, requests };
}

function listenToStderr(): string[] {
  const told: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => told.push(String(text)) > 0);
  return told;
}

test("a call whose router falls silent is made again under its id, and that is said", async () => {
  const { connection, requests } = openGateway(2);
  const told = listenToStderr();
  expect(await resultOfToolCall(connection, call)).toMatchObject({ outputJson: '"done"' });
  expect(requests.map(({ recovering }) => recovering)).toEqual([false, true, true]);
  expect(new Set(requests.map(({ callId }) => callId)).size).toBe(1);
  expect(requests[0]?.callId).not.toBe("");
  expect(told).toHaveLength(2);
  expect(told[0]).toContain(`${silence}: the call ${requests[0]?.callId} is repeated (1 of 4)`);
});

test("a call that is lost again and again ends with the fault", async () => {
  const { connection, requests } = openGateway(100);
  listenToStderr();
  await expect(resultOfToolCall(connection, call)).rejects.toThrow(silence);
  expect(requests).toHaveLength(5);
});
