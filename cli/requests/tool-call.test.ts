import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolRequest, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Connection } from "../connection.ts";
import { resultOfToolCall } from "./tool-call.ts";

const call = { sessionId: "s", name: "tool", argumentsJson: "{}" };
const untroubled = new AbortController().signal;
const silence = "nothing was heard of the call for 3000 ms";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A gateway whose routers are lost in mid-call so many times. */
function openGateway(lost: number) {
  const requests: CallToolRequest[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(ToolService, {
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
  expect(await resultOfToolCall(connection, call, untroubled)).toMatchObject({ outputJson: '"done"' });
  expect(new Set(requests.map(({ callId }) => callId)).size).toBe(1);
  expect(requests[0]?.callId).not.toBe("");
  expect(told).toHaveLength(2);
  expect(told[0]).toContain(`${silence}: the call ${requests[0]?.callId} is repeated (1 of 4)`);
});

test("a call that is lost again and again ends with the fault", async () => {
  const { connection, requests } = openGateway(100);
  listenToStderr();
  await expect(resultOfToolCall(connection, call, untroubled)).rejects.toThrow(silence);
  expect(requests).toHaveLength(5);
});

test("TOOL-9 a call that is interrupted is canceled, and its result says so", async () => {
  const told = listenToStderr();
  const interruption = new AbortController();
  const [begun, canceled] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const transport = createRouterTransport(({ service }) => {
    service(ToolService, {
      async *callTool({ callId }) {
        begun.resolve(callId);
        await canceled.promise;
        yield { event: { case: "result", value: { isError: true, outputJson: '"the call was canceled"' } } };
      },
    });
    service(ToolCallService, {
      cancelToolCall({ callId }) {
        canceled.resolve(callId);
        return { started: true };
      },
    });
  });
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  const result = resultOfToolCall(connection, call, interruption.signal);
  const callId = await begun.promise;
  interruption.abort();
  expect(await canceled.promise).toBe(callId);
  expect(await result).toMatchObject({ isError: true });
  expect(told).toContain(`the call ${callId} is canceled\n`);
});
