import { request } from "node:http";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type SubmitToolResultRequest, ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

const stack = new AsyncDisposableStack();
let url = "";
/** Numbers that a double does not hold. */
const odd = "[12345678901234567890,1e999,-0,1.10]";
const submitted: SubmitToolResultRequest[] = [];

beforeAll(async () => {
  const bus = stack.use(await openTestBus());
  stack.use(
    await serveOnNats(bus, {
      service: "tool-router",
      routes: (router) => {
        router.service(ToolCallService, {
          submitToolResult(asked) {
            submitted.push(asked);
            return {};
          },
          async *watchToolCalls({ tools }) {
            if (tools.includes("count")) {
              const call = { callId: "c1", tool: "count", argumentsJson: `{\n "n": ${odd}\n}` };
              yield { update: { case: "call", value: { call, deliveryId: "d1" } } };
            }
            if (tools.includes("wiegh")) {
              const notice = { tool: "wiegh", problem: "there is no tool", closestNames: ["weigh"] };
              yield { update: { case: "notice", value: notice } };
            }
            throw connectError("permission_denied", "a watcher of that name is not yours", { reason: "CALL_TAKEN" });
          },
        });
      },
    }),
  );
  const { url: natsUrl, credentials } = bus.server;
  const config = readConfig({
    NATS_URL: natsUrl,
    TOOLBUS_BUS_CREDENTIALS: credentials,
    TOOLBUS_HTTP_PORT: "0",
    TOOLBUS_AUTH: "none",
  });
  const logger = pino({ level: "silent" });
  const signal = new AbortController().signal;
  const telemetry = stack.use(await openTelemetry({ service: "gateway" }));
  const service = stack.use(
    await openService(config, { name: "gateway", instance: "test", logger, signal, telemetry }),
  );
  url = String(service.announcement?.url);
});
beforeEach(() => {
  submitted.length = 0;
});
afterAll(() => stack.disposeAsync());

/** A request whose path goes out as it stands, which `fetch` would tidy up. */
function statusOf(method: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, method, path, headers: { "content-type": "application/json" } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end(method === "POST" ? "{}" : undefined);
  });
}

async function submit(body: object | string): Promise<number> {
  const headers = { "content-type": "application/json" };
  const path = `${url}/api/runs/r1/tool-results`;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (await fetch(path, { method: "POST", headers, body: text })).status;
}

test.each([
  ["POST", "/api/runs/%ZZ/tool-results", 400],
  ["POST", "/api/tool-calls/%E0%A4%A/acknowledgement", 400],
  ["GET", "//", 404],
  ["GET", "//[x", 404],
])(
  "TOOL-6 %s %s, a path that cannot be read, is answered with %i and ends no gateway",
  async (method, path, status) => {
    expect(await statusOf(method, path)).toBe(status);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  },
);

test("TOOL-7 an error that is null or empty is none, as everywhere: a non-empty one wins", async () => {
  expect(await submit({ callId: "c1", result: 7, error: null })).toBe(200);
  expect(await submit({ callId: "c1", result: 7, error: "" })).toBe(200);
  expect(await submit({ callId: "c1", result: 7, error: "broken" })).toBe(200);
  expect(await submit({ callId: "c1", result: null })).toBe(200);
  expect(await submit({ callId: "c1" }), "the router refuses it").toBe(200);
  expect(submitted.map(({ outcome }) => outcome)).toEqual([
    { case: "resultJson", value: "7" },
    { case: "resultJson", value: "7" },
    { case: "error", value: "broken" },
    { case: "resultJson", value: "null" },
    { case: "resultJson", value: "" },
  ]);
  expect(await submit({ callId: "c1", result: 7, submissionId: 7 })).toBe(400);
  expect(await submit({ callId: "c1", result: 7, submissionId: "mine" })).toBe(200);
  expect(submitted.map(({ submissionId }) => submissionId)).toEqual(["", "", "", "", "", "mine"]);
  expect(await submit({ callId: "c1", error: { code: 1 } })).toBe(400);
});

test("KIND-4 numbers of results lose no digit, and arguments go on as they are written", async () => {
  expect(await submit(`{"callId":"c1","result":{"n":${odd},"__proto__":1}}`)).toBe(200);
  expect(await submit(`{"callId":"c1","result":12345678901234567890}`)).toBe(200);
  expect(submitted.map(({ outcome }) => outcome.value)).toEqual([
    '{"n":[12345678901234567890,1e999,0,1.1],"__proto__":1}',
    "12345678901234567890",
  ]);
  expect(await submit("7")).toBe(400);
  expect(await (await fetch(`${url}/api/tool-calls?tool=count`)).text()).toContain(`"arguments":{  "n": ${odd} }`);
});

test("TOOL-7 a call from outside of a run is answered where its empty run leads", async () => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ callId: "c1", result: 1 });
  expect((await fetch(`${url}/api/runs//tool-results`, { method: "POST", headers, body })).status).toBe(200);
  expect(submitted).toMatchObject([{ callId: "c1", runId: "", outcome: { value: "1" } }]);
});

test("TOOL-6 a stream of calls that is refused says why, before it ends", async () => {
  const response = await fetch(`${url}/api/tool-calls?tool=stock&watcher=theirs`);
  expect(await response.text()).toContain(
    `event: refused\ndata: {"code":"permission_denied","message":"a watcher of that name is not yours","reason":"CALL_TAKEN"}`,
  );
  const tooLong = await fetch(`${url}/api/tool-calls?tool=stock&watcher=${"x".repeat(257)}`);
  expect(tooLong.status).toBe(400);
  expect(await tooLong.json()).toMatchObject({
    code: "invalid_argument",
    reason: "INVALID_REQUEST",
    fieldViolations: [{ field: "watcher_id", ruleId: "string.max_len" }],
  });
});

test("TOOL-6 a stream of calls tells of a tool that brings none", async () => {
  const response = await fetch(`${url}/api/tool-calls?tool=wiegh`);
  expect(await response.text()).toContain(
    `event: notice\ndata: {"tool":"wiegh","problem":"there is no tool","closestNames":["weigh"]}\n\n`,
  );
});

test.each(["cross-site", "same-site"])(
  "SEC-1 a page of the web that sends no origin (%s) watches no tool",
  async (site) => {
    const response = await fetch(`${url}/api/tool-calls?tool=wiegh`, { headers: { "sec-fetch-site": site } });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ code: "permission_denied", reason: "HOST_NOT_ALLOWED" });
  },
);

test.each(["same-origin", "none"])("TOOL-6 the gateway's own pages (%s) watch tools", async (site) => {
  const response = await fetch(`${url}/api/tool-calls?tool=wiegh`, { headers: { "sec-fetch-site": site } });
  expect(await response.text()).toContain("event: notice");
});

test("SEC-1 a page of another origin watches no tool", async () => {
  const response = await fetch(`${url}/api/tool-calls?tool=wiegh`, { headers: { origin: "https://evil.example" } });
  expect(response.status).toBe(403);
});
