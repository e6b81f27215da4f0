// What clients can do with the bodies of their requests: by every protocol, over both versions of HTTP.

import { once } from "node:events";
import { connect } from "node:http2";
import { setImmediate } from "node:timers/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, it } from "vitest";
import { detailOf, nameFromReason } from "#runtime/failure/error-detail.ts";
import { sentBy } from "#runtime/rpc/http/messages.ts";
import { type HttpServer, type HttpServerOptions, serveOnHttp } from "#runtime/rpc/http/server.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { until } from "#runtime/time/until.ts";
import { bytesValue, openIdleStreams, resetStreams, sendHalf } from "./floods.ts";
import {
  errorOf,
  framed,
  type HttpVersion,
  open,
  openStream,
  type ProbeAnswer,
  type Protocol,
  protocols,
  send,
} from "./http-probe.ts";

let server: HttpServer | undefined;
let served = 0;

afterEach(() => server?.[Symbol.asyncDispose]());

async function serve(body: HttpServerOptions["body"] = {}): Promise<string> {
  served = 0;
  server = await serveOnHttp({
    drainTimeoutMs: 100,
    body,
    admit: (request) => void sentBy(request, String(request.headers.authorization)),
    routes: (router) =>
      router.service(EchoService, {
        unary(message) {
          served += 1;
          return { value: new Uint8Array(message.value.length === 0 ? 0 : 1) };
        },
        async *serverStream(message, { signal }) {
          served += 1;
          yield { value: message.value.subarray(0, 1) };
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
        async *bidi(messages) {
          for await (const message of messages) yield message;
        },
      }),
  });
  return server.url;
}

const pathOf = (method: string) => `/${EchoService.typeName}/${method}`;
const headOf = ({ binary, method }: Protocol, headers: Record<string, string> = {}) => ({
  method: "POST",
  path: pathOf(method === "ListAgents" ? "Unary" : "ServerStream"),
  headers: { "content-type": binary, ...headers },
});

const outcomeOf = (answer: ProbeAnswer) => {
  const error = errorOf(answer);
  const detail = error && detailOf(error);
  return { reason: detail && nameFromReason(detail.reason), message: error?.rawMessage };
};

const versions: HttpVersion[] = ["1.1", "2"];
const doors = versions.flatMap((version) =>
  Object.entries(protocols).map(([name, protocol]) => [name, version, protocol] as const),
);

const bombs = { gzip: gzipSync(bytesValue(40 * 2 ** 20)), br: brotliCompressSync(bytesValue(40 * 2 ** 20)) };

describe.each(doors)("%s over HTTP/%s", (_, version, protocol) => {
  it.each(Object.entries(bombs))("SEC-5 a message that %s packed 1,000 times is not unpacked", async (name, bomb) => {
    const url = await serve();
    const head = headOf(protocol, { [protocol.encoding]: name });
    const answer = await send(url, version, { ...head, body: framed(protocol, bomb, 1) });
    expect(outcomeOf(answer)).toEqual({
      reason: "MESSAGE_TOO_LARGE",
      message: expect.stringMatching(/more than 100 times its size.*without compression/),
    });
    expect(served).toBe(0);
  });

  it("SEC-5 half a body has its time, and then its place is free", async () => {
    const url = await serve({ graceMs: 150, bytesPerSecond: 1024 });
    using request = open(url, version, headOf(protocol, { ...(version === "1.1" && { "content-length": "5000" }) }));
    request.write(framed(protocol, bytesValue(4_000)).subarray(0, 100));
    expect(outcomeOf(await request.answer)).toEqual({
      reason: "DEADLINE_EXCEEDED",
      message: expect.stringContaining("did not come in time"),
    });
    expect(served).toBe(0);
  });

  it("SEC-5 a body in parts of a few bytes is served, unless these are thousands", async () => {
    const url = await serve();
    const sendIn = async (length: number, count: number) => {
      const body = framed(protocol, bytesValue(count * length));
      const request = open(url, version, headOf(protocol));
      for (let from = 0; from < body.length; from += length) {
        request.write(body.subarray(from, from + length));
        await setImmediate();
      }
      return request;
    };
    using tiny = await sendIn(1, 5_200);
    expect(outcomeOf(await tiny.answer)).toEqual({
      reason: "REQUEST_MALFORMED",
      message: expect.stringContaining("longer parts"),
    });
    expect(served).toBe(0);
    const sendingOn = setInterval(() => {
      for (let part = 0; part < 100; part += 1) tiny.write(new Uint8Array(1));
    }, 5);
    const cut = comesWithin(4_000, tiny.closed); // whoever sends nothing has 5 s
    expect(await cut.finally(() => clearInterval(sendingOn))).toBe(true);
    if (protocol.method === "WatchAgents") return; // its answer goes on
    for (const [length, count] of [
      [3, 2_000],
      [64, 6_000],
    ] as const) {
      using small = await sendIn(length, count);
      small.end();
      expect(outcomeOf(await small.answer).reason).toBeUndefined();
    }
    expect(served).toBe(2);
  });

  it("SEC-5 a body that comes drop by drop is slower than is allowed", async () => {
    const url = await serve({ graceMs: 200, bytesPerSecond: 1024 });
    using request = open(url, version, headOf(protocol, { ...(version === "1.1" && { "content-length": "5000" }) }));
    const body = framed(protocol, bytesValue(4_000));
    let sent = 0;
    const dripping = setInterval(() => request.write(body.subarray(sent, ++sent)), 10);
    const answer = await request.answer.finally(() => clearInterval(dripping));
    expect(outcomeOf(answer).reason).toBe("DEADLINE_EXCEEDED");
  });
});

it.each(Object.entries(protocols))(
  "SEC-5 %s: a request whose connection breaks before its end is not served",
  async (_, protocol) => {
    const url = await serve();
    const session = connect(url);
    await once(session, "connect");
    openStream(session, headOf(protocol)).write(framed(protocol, bytesValue(1)));
    for (const _ of [1, 2]) await new Promise((resolve) => session.ping(resolve)); // it has come
    session.destroy();
    const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "2" }));
    for (let call = 0; call < 20; call += 1) await client.unary({ value: new Uint8Array(1) });
    expect(served).toBe(20);
  },
);

it("SEC-5 a body that comes as fast as its line carries it has all the time that it takes", async () => {
  const url = await serve({ graceMs: 100, bytesPerSecond: 1024 });
  const protocol = protocols.Connect;
  using request = open(url, "2", headOf(protocol));
  const body = framed(protocol, bytesValue(20_000));
  for (let at = 0; at < body.length; at += 2_000) {
    request.write(body.subarray(at, at + 2_000));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  request.end();
  expect((await request.answer).status).toBe(200);
});

it("SEC-5 1,000 half-sent requests hold what one connection may, and no other connection feels it", async () => {
  const url = await serve({ connectionBytes: 1_000_000, graceMs: 2_000 });
  const half = framed(protocols.Connect, bytesValue(40_000)).subarray(0, 10_000);
  using flood = sendHalf(url, headOf(protocols.Connect), { part: half, count: 1_000 });
  const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "2" }));
  const tookMs: number[] = [];
  for (let call = 0; call < 20; call += 1) {
    const startedAt = performance.now();
    await client.unary({ value: new Uint8Array(1_000) });
    tookMs.push(performance.now() - startedAt);
  }
  const outcomes = await Promise.all(flood.requests.map(async ({ answer }) => outcomeOf(await answer).reason));
  expect(outcomes.filter((reason) => reason === "CONNECTION_FULL")).toHaveLength(900);
  expect(outcomes.filter((reason) => reason === "DEADLINE_EXCEEDED")).toHaveLength(100);
  expect(Math.max(...tookMs)).toBeLessThan(5_000);
});

it("SEC-6 half-sent requests of one key hold what two connections may, over however many, and others have theirs", async () => {
  const url = await serve({ connectionBytes: 100_000, graceMs: 5_000 });
  const half = framed(protocols.Connect, bytesValue(40_000)).subarray(0, 10_000);
  const headFor = (authorization: string) => headOf(protocols.Connect, { authorization });
  await using stack = new AsyncDisposableStack();
  const flood = () => stack.use(sendHalf(url, headFor("mallory"), { part: half, count: 9 })).requests;
  const answers = Array.from({ length: 4 }, flood).flatMap((requests) => requests.map(({ answer }) => answer));
  const alice = stack.use(sendHalf(url, headFor("alice"), { part: half, count: 1 }));
  alice.requests[0]?.end(framed(protocols.Connect, bytesValue(40_000)).subarray(10_000));
  expect((await alice.requests[0]?.answer)?.status).toBe(200);
  const outcomes = (await Promise.all(answers)).map(outcomeOf);
  const refused = outcomes.filter(({ reason }) => reason === "SHARE_EXCEEDED");
  expect(refused).toHaveLength(16);
  expect(refused[0]?.message).toContain("hold more than 200000 bytes of requests in flight");
  expect(outcomes.filter(({ reason }) => reason === "DEADLINE_EXCEEDED")).toHaveLength(20);
  await stack.disposeAsync();
  const whole = { ...headFor("mallory"), body: framed(protocols.Connect, bytesValue(40_000)) };
  await until(async () => (await send(url, "2", whole)).status === 200);
});

it("SEC-5 what a request unpacks counts with its connection, and is given back with its answer", async () => {
  const url = await serve({ connectionBytes: 300_000 });
  const packed = framed(protocols.gRPC, gzipSync(bytesValue(200_000)), 1);
  const head = headOf(protocols["a stream of gRPC"], { "grpc-encoding": "gzip" });
  const session = connect(url);
  const first = openStream(session, head);
  first.end(packed);
  await until(() => served === 1);
  const second = openStream(session, head);
  second.end(packed);
  expect(outcomeOf(await second.answer).reason).toBe("CONNECTION_FULL");
  first.reset();
  await first.closed;
  const third = openStream(session, head);
  third.end(packed);
  await until(() => served === 2);
  session.destroy();
});

it("SEC-5 a stream of messages that falls silent has its time", async () => {
  const url = await serve({ idleMs: 200 });
  const session = connect(url);
  const head = { method: "POST", path: pathOf("Bidi"), headers: { "content-type": "application/grpc" } };
  const stream = openStream(session, head);
  for (let sent = 0; sent < 5; sent += 1) {
    stream.write(framed(protocols.gRPC, bytesValue(3)));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(outcomeOf(await stream.answer).reason).toBe("DEADLINE_EXCEEDED");
  session.destroy();
});

it("SEC-5 5,000 streams that are reset as soon as they are opened delay nobody", async () => {
  const url = await serve();
  const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "2" }));
  await client.unary({ value: new Uint8Array(1) });
  using attack = resetStreams(url, headOf(protocols.gRPC), 5_000);
  const tookMs: number[] = [];
  for (let call = 0; call < 50; call += 1) {
    const startedAt = performance.now();
    await client.unary({ value: new Uint8Array(1) });
    tookMs.push(performance.now() - startedAt);
  }
  expect(attack.opened).toBeGreaterThan(0);
  expect(Math.max(...tookMs)).toBeLessThan(5_000);
});

it("SEC-5 2,000 idle streams leave the others alone", async () => {
  const url = await serve();
  const head = headOf(protocols["a stream of gRPC"]);
  using _ = openIdleStreams(url, head, { body: framed(protocols.gRPC, bytesValue(1)), count: 2_000 });
  await until(() => served === 2_000, { timeoutMs: 20_000 });
  const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  const startedAt = performance.now();
  await client.unary({ value: new Uint8Array(1) });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
