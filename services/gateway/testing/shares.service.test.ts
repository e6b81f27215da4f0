import { once } from "node:events";
import { type IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:http2";
import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, assert, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { AgentService, ListAgentsRequestSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { type Access, openAccess } from "../access/open-access.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";
import { sendHalf } from "./floods.ts";
import { errorOf, framed, protocols } from "./http-probe.ts";

const protocolsOf = [
  ["Connect", { type: "application/proto", isFramed: false }],
  ["gRPC", { type: "application/grpc", isFramed: true }],
] as const;
const stack = new AsyncDisposableStack();
const gate = Promise.withResolvers<void>();
let access: Access;
let config: ReturnType<typeof readConfig>;
let url = "";
let waiting = 0;

beforeAll(async () => {
  const bus = stack.use(await openTestBus());
  stack.use(
    await serveOnNats(bus, {
      service: "tool-router",
      drainTimeoutMs: 1,
      routes: (router) => {
        router.service(ToolCallService, {
          async *watchToolCalls(_request, { signal }) {
            yield {};
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          },
        });
        router.service(AgentService, {
          async listAgents({ pageSize }) {
            waiting += 1;
            if (pageSize === 1) await gate.promise;
            waiting -= 1;
            return { nextPageToken: "x".repeat(pageSize === 2 ? 100_000 : 0) };
          },
        });
      },
    }),
  );
  const { url: natsUrl, credentials } = bus.server;
  const env = {
    ...{ NATS_URL: natsUrl, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_HTTP_PORT: "0" },
    TOOLBUS_API_KEYS: "alice:a-key-of-some-length,mallory:another-key-of-some-length",
    TOOLBUS_MAX_REQUEST_BYTES: String(64 * 1024),
    TOOLBUS_SHARE_CALLS: "5",
    TOOLBUS_SHARE_STREAMS: "2",
  };
  const telemetry = stack.use(await openTelemetry({ service: "gateway" }));
  const logger = pino({ level: "silent" });
  const context = { name: "gateway", instance: "g1", logger, telemetry, signal: new AbortController().signal };
  config = readConfig(env);
  access = stack.use(await openAccess(config, bus, assert.fail));
  url = String(
    stack.use(
      await openService(
        { ...config, maxUnreadBytes: 256 * 1024, maxHeldBytes: 200 * 1024, maxStrangerBytes: 2_000 },
        context,
      ),
    ).announcement?.url,
  );
});
afterAll(() => stack.disposeAsync());

it.each(["1.1", "2"] as const)(
  "SEC-6 who has all of its calls in flight is refused the next one, and others are not: HTTP/%s",
  async (httpVersion) => {
    const { listAgents } = createClient(AgentService, createConnectTransport({ baseUrl: url, httpVersion }));
    const by = (key: string) => ({ headers: { "x-api-key": key } });
    const [mallory, alice] = [by("another-key-of-some-length"), by("a-key-of-some-length")];
    const abort = new AbortController();
    const held = Array.from({ length: 5 }, () => listAgents({ pageSize: 1 }, { ...mallory, signal: abort.signal }));
    const ended = Promise.allSettled(held);
    await until(() => waiting === 5);
    const refused = await listAgents({}, mallory).catch(failureFromConnectError);
    expect(refused).toMatchObject({
      code: "resource_exhausted",
      reason: "SHARE_EXCEEDED",
      metadata: { share: "calls in flight", limit: "5" },
    });
    await listAgents({}, alice);
    abort.abort();
    await ended;
    await until(() =>
      listAgents({}, mallory).then(
        () => true,
        () => false,
      ),
    );
    waiting = 0;
  },
);

it("SEC-6 paths of plain HTTP have their share, too, and say so as 429", async () => {
  const watch = (key: string, signal?: AbortSignal) =>
    fetch(`${url}/api/tool-calls?tool=weigh`, { headers: { "x-api-key": key }, ...(signal && { signal }) });
  const [mallory, alice] = ["another-key-of-some-length", "a-key-of-some-length"];
  const leaving = new AbortController();
  const open = [await watch(mallory, leaving.signal), await watch(mallory, leaving.signal)];
  expect(open.map(({ status }) => status)).toEqual([200, 200]);
  const refused = await watch(mallory);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
  expect(await refused.json()).toMatchObject({
    reason: "SHARE_EXCEEDED",
    message: expect.stringContaining("2 streams in flight"),
  });
  expect((await watch(alice, leaving.signal)).status).toBe(200);
  leaving.abort();
  const again = new AbortController();
  await until(async () => (await watch(mallory, again.signal)).status === 200);
  again.abort();
});

it("SEC-6 what the requests of a principal hold together has its bound, which is 256 MiB however small they may be", async () => {
  expect(config.maxHeldBytes).toBe(256 * 2 ** 20);
  const headers = { "x-api-key": "another-key-of-some-length" };
  expect(await refusalOfHalf(`/${AgentService.typeName}/ListAgents`, 50_000, headers)).toMatchObject({
    reason: "SHARE_EXCEEDED",
    metadata: { share: "bytes of requests in flight", limit: String(200 * 1024) },
  });
});

it("SEC-6 what has come of a message on a WebSocket is part of it", async () => {
  const headers = { "x-api-key": "another-key-of-some-length" };
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers });
  await once(socket, "open");
  socket.send(Buffer.alloc(60_000), { fin: false });
  socket.ping();
  await once(socket, "pong");
  const refused = await refusalOfHalf(`/${AgentService.typeName}/ListAgents`, 50_000, headers, 3);
  expect(refused?.reason).toBe("SHARE_EXCEEDED");
  socket.terminate();
});

it("SEC-6 strangers of one address have the share of a principal at what is open to them, and nobody else's", async () => {
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "2" });
  const health = createClient(Health, transport);
  const leaving = new AbortController();
  const watch = () => health.watch({}, { signal: leaving.signal })[Symbol.asyncIterator]().next();
  expect((await Promise.all([watch(), watch()])).map(({ done }) => done)).toEqual([false, false]);
  const refused = await watch().catch(failureFromConnectError);
  expect(refused).toMatchObject({
    reason: "SHARE_EXCEEDED",
    message: expect.stringMatching(/^"[\d.:a-f]+" has its share of this gateway: 2 streams in flight/),
  });
  await createClient(AgentService, transport).listAgents({}, { headers: { "x-api-key": "a-key-of-some-length" } });
  expect((await health.check({})).status).toBe(ServingStatus.SERVING);
  leaving.abort();
});

it("SEC-5 a stranger who asks for health makes no principal wait that asks alone", async () => {
  const requestBy = (headers: IncomingHttpHeaders) => Object.assign(new IncomingMessage(new Socket()), { headers });
  const stranger = requestBy({});
  await access.admit(stranger, Health.method.check, new ServerResponse(stranger));
  let entered = 0;
  const countEntered = (held: Disposable) => {
    entered += 1;
    stack.use(held);
  };
  for (let call = 0; call < 5; call += 1)
    void access.enterAgain(requestBy({ "x-api-key": "a-key-of-some-length" })).then(countEntered);
  await setImmediate(); // sooner than a place becomes free
  expect(entered).toBe(5);
});

it.each(protocolsOf)(
  "SEC-6 what a principal leaves unread of its answers is bounded, and nobody else's is cut: %s",
  async (_, protocol) => {
    const path = `/${AgentService.typeName}/ListAgents`;
    const message = toBinary(ListAgentsRequestSchema, create(ListAgentsRequestSchema, { pageSize: 2 }));
    const ask = (key: string) => {
      const session = connect(url, { settings: { initialWindowSize: 0 } });
      const request = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": protocol.type,
        "x-api-key": key,
      });
      request.on("error", () => {});
      request.end(protocol.isFramed ? framed(protocols.gRPC, message) : message);
      return { session, isCut: () => request.closed, isAnswered: once(request, "response") };
    };
    const mallorys = Array.from({ length: 5 }, () => ask("another-key-of-some-length"));
    const alices = Array.from({ length: 2 }, () => ask("a-key-of-some-length"));
    await Promise.all(alices.map(({ isAnswered }) => isAnswered));
    await until(() => mallorys.filter(({ isCut }) => isCut()).length === 3, { what: "the cut of three" });
    expect(alices.map(({ isCut }) => isCut())).toEqual([false, false]);
    for (const { session } of [...mallorys, ...alices]) session.destroy();
  },
);

it("SEC-6 what the requests of strangers of one address hold together is eight of the largest", async () => {
  expect(config.maxStrangerBytes).toBe(8 * 64 * 1024);
  expect(await refusalOfHalf(`/${Health.typeName}/Check`, 500)).toMatchObject({
    reason: "SHARE_EXCEEDED",
    metadata: { share: "bytes of requests in flight", limit: "2000" },
  });
});

/** Of which the first is refused of some that are half sent. */
async function refusalOfHalf(path: string, bytes: number, headers: Record<string, string> = {}, count = 5) {
  const head = { method: "POST", path, headers: { ...headers, "content-type": "application/proto" } };
  using half = sendHalf(url, head, { part: new Uint8Array(bytes), count });
  const refused = errorOf(await Promise.race(half.requests.map(({ answer }) => answer)));
  return refused && failureFromConnectError(refused);
}
