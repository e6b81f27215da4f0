import { pino } from "pino";
import { expect, it } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { callTool } from "../mcp/http/testing/door.ts";
import { openService } from "../service.ts";

it("SEC-5 of the blocks of a result no more is read than its client is told", async () => {
  await using bus = await openTestBus();
  const blockOf = (type: string, size: bigint) => ({
    blockJson: JSON.stringify({ type, mimeType: "image/png" }),
    storedReference: `a-${type}-of-${size}`,
    size,
  });
  const content = [blockOf("image", 50_000_000n), blockOf("text", 50_000_000n)];
  const read: unknown[] = [];
  await using _router = await serveOnNats(bus, {
    service: "tool-router",
    routes: (router) => {
      router.service(SessionService, { getSession: ({ sessionId }) => ({ session: { id: sessionId } }) });
      router.service(ToolService, {
        async *callTool({ callId }) {
          yield { callId, event: { case: "result", value: { content, outputJson: jsonOfBlocks(content) } } };
        },
      });
      router.service(ToolCallService, {
        async *readResult({ result, limit }) {
          read.push([result.value, limit]);
          yield { part: { case: "chunk", value: { data: Buffer.from("abc") } } };
        },
      });
    },
  });
  const { url, credentials } = bus.server;
  const config = readConfig({
    ...{ NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials },
    ...{ TOOLBUS_HTTP_PORT: "0", TOOLBUS_AUTH: "none" },
  });
  const logger = pino({ level: "silent" });
  await using telemetry = await openTelemetry({ service: "gateway" });
  const signal = new AbortController().signal;
  await using service = await openService(config, { name: "gateway", instance: "g", logger, telemetry, signal });
  const told = await callTool(`${service.announcement?.url}/mcp/clerk`, "draw");
  expect(told).toMatch(/image of 50000000 bytes….*"text":"abc… /);
  expect(read).toEqual([["a-text-of-50000000", 65_536n]]);
});
