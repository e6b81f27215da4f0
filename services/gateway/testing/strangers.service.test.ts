// Who has no key is sent away by the head of the request, and what is open to strangers takes next to nothing from them.

import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Health, HealthCheckRequestSchema } from "#gen/health/v1/health_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { detailOf, nameFromReason } from "#runtime/failure/error-detail.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";
import { plainPaths, typesOfPages } from "./floods.ts";
import {
  errorOf,
  framed,
  type HttpVersion,
  open,
  openStream,
  type ProbeAnswer,
  protocols,
  send,
} from "./http-probe.ts";

const stack = new AsyncDisposableStack();
let bus: TestBus;
/** With a key, and without any. */
let [url, openUrl] = ["", ""];
let calls = 0;

beforeAll(async () => {
  bus = stack.use(await openTestBus());
  stack.use(
    await serveOnNats(bus, {
      service: "tool-router",
      routes: (router) =>
        router.service(AgentService, {
          listAgents() {
            calls += 1;
            return {};
          },
        }),
    }),
  );
  url = await openGateway({ TOOLBUS_API_KEYS: "alice:a-key-of-some-length" });
  openUrl = await openGateway({ TOOLBUS_AUTH: "none" });
});
afterAll(() => stack.disposeAsync());

async function openGateway(env: NodeJS.ProcessEnv): Promise<string> {
  const { url: natsUrl, credentials } = bus.server;
  const bare = { NATS_URL: natsUrl, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_HTTP_PORT: "0" };
  const telemetry = stack.use(await openTelemetry({ service: "gateway" }));
  const logger = pino({ level: "silent" });
  const context = { name: "gateway", instance: "g1", logger, telemetry, signal: new AbortController().signal };
  return String(stack.use(await openService(readConfig({ ...bare, ...env }), context)).announcement?.url);
}

function reasonOf(answer: ProbeAnswer): string | undefined {
  const error = errorOf(answer);
  const detail = error && detailOf(error);
  return detail && nameFromReason(detail.reason);
}

const versions: HttpVersion[] = ["1.1", "2"];
const doors = versions.flatMap((version) =>
  Object.entries(protocols).map(([name, protocol]) => [name, version, protocol] as const),
);
const declared = (version: HttpVersion, length: number) => version === "1.1" && { "content-length": `${length}` };

describe.each(doors)("%s over HTTP/%s", (_, version, protocol) => {
  const path = `/${AgentService.typeName}/${protocol.method}`;

  it("SEC-5 without a key the head of a request is answered, and nothing of its body is waited for", async () => {
    const headers = { "content-type": protocol.binary, ...declared(version, 1_000) };
    using request = open(url, version, { method: "POST", path, headers });
    request.write(new Uint8Array(1));
    expect(reasonOf(await request.answer)).toBe("CREDENTIALS_INVALID");
  });

  it("SEC-5 what is open to strangers reads a few KB and unpacks nothing", async () => {
    const head = { method: "POST", path: `/${Health.typeName}/Check`, headers: { "content-type": protocol.binary } };
    const ask = (service: string, packed: boolean) => {
      const message = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
      const body = packed ? framed(protocol, gzipSync(message), 1) : framed(protocol, message);
      const headers = { ...head.headers, ...(packed && { [protocol.encoding]: "gzip" }) };
      return send(url, version, { ...head, headers, body });
    };
    if (protocol.method === "WatchAgents" && protocol.timeout !== "grpc-timeout") return; // no stream of Connect's
    expect(reasonOf(await ask("", false))).toBe(undefined);
    expect(reasonOf(await ask("x".repeat(5_000), false))).toBe("MESSAGE_TOO_LARGE");
    expect(reasonOf(await ask("", true))).toMatch(/^(PROTOCOL_UNSUPPORTED|REQUEST_MALFORMED)$/);
  });
});

it.each([
  ["POST", "/api/runs/r/tool-results"],
  ["POST", "/api/tool-calls/c/acknowledgement"],
  ["GET", "/api/tool-calls?tool=x"],
  ["GET", "/metrics"],
] as const)("SEC-5 %s %s is answered by its head, too", async (method, path) => {
  const headers = { "content-type": "application/json", ...(method === "POST" && { "content-length": "1000" }) };
  using request = open(url, "1.1", { method, path, headers });
  request.write(new Uint8Array(0));
  expect((await request.answer).status).toBe(401);
});

it.each(versions)("SEC-5 HTTP/%s: whoever sends on after a refusal is cut off", async (version) => {
  const headers = { "content-type": "application/proto", ...declared(version, 50_000_000) };
  using request = open(url, version, { method: "POST", path: `/${AgentService.typeName}/ListAgents`, headers });
  const sending = setInterval(() => request.write(new Uint8Array(256 * 1024)), 5);
  await request.answer.catch(() => {}); // cut off before it has read it, perhaps
  await request.closed.finally(() => clearInterval(sending));
});

describe("a gateway that lets everybody of its machine in", () => {
  const call = { method: "POST", body: new TextEncoder().encode("{}") };
  const path = `/${AgentService.typeName}/ListAgents`;

  it.each([
    ["1.1", path],
    ["2", path],
    ["1.1", "/api/runs/r/tool-results"],
    ["1.1", "/metrics"],
  ] as const)("SEC-1 HTTP/%s %s: a page whose name was pointed at this machine is refused", async (version, path) => {
    const before = calls;
    const named = version === "2" ? { ":authority": "evil.example:7480" } : { host: "evil.example:7480" };
    const headers = { "content-type": "application/json", ...named };
    const answer = await send(openUrl, version, { ...call, path, headers });
    expect([answer.status, reasonOf(answer)]).toEqual([403, "HOST_NOT_ALLOWED"]);
    expect(calls).toBe(before);
  });

  it.each(typesOfPages)("SEC-1 what a page may send unasked, as %s, calls nothing", async (type) => {
    const before = calls;
    const headers = { "content-type": type, origin: "https://evil.example" };
    for (const target of [path, ...plainPaths]) {
      const answer = await send(openUrl, "1.1", { ...call, path: target, headers });
      expect([400, 415], target).toContain(answer.status);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect(calls).toBe(before);
  });

  it("SEC-5 1,000 calls that a connection opens and does not end keep no other from its answer", async () => {
    const session = connect(openUrl);
    const head = { method: "POST", path, headers: { "content-type": "application/grpc" } };
    for (let n = 0; n < 1_000; n += 1) openStream(session, head).write(new Uint8Array([0, 0]));
    const answer = await send(openUrl, "2", { ...call, path, headers: { "content-type": "application/json" } });
    expect(answer.status).toBe(200);
    session.destroy();
  });
});
