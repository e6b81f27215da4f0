import { once } from "node:events";
import { createServer, request as openRequest } from "node:http";
import { type ClientHttp2Session, connect, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip, connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { createFailureInterceptor } from "../../../failure/connect.ts";
import { requestGate } from "../request-gate.ts";
import { type HttpServer, serveOnHttp } from "../server.ts";
import { bytes, textOf } from "../testing/echo-server.ts";

/* connect-1: whatever is asked, the answer is the one that Connect's own handlers give. */

const metadata = { "x-mood": "fine", "x-again": "twice" };
const refusal = () =>
  new ConnectError("no such thing", Code.NotFound, metadata, [{ desc: BytesValueSchema, value: bytes("why") }]);

const implementation: Partial<ServiceImpl<typeof EchoService>> = {
  async unary(message, { responseHeader, responseTrailer, signal, requestHeader }) {
    const text = textOf(message);
    responseHeader.append("x-head", "one");
    responseHeader.append("x-head", "two");
    responseTrailer.set("x-tail", "end");
    responseHeader.set("x-asked", requestHeader.get("x-ask") ?? "nothing");
    if (text === "refused") throw refusal();
    if (text === "broken") throw new TypeError("secret");
    if (text === "slow") {
      await once(signal, "abort");
      throw new ConnectError("it took too long", Code.DeadlineExceeded);
    }
    return text === "long" ? bytes("a".repeat(5_000)) : message;
  },
  async *serverStream(message, { responseHeader, responseTrailer, signal }) {
    const text = textOf(message);
    if (text === "silent") await once(signal, "abort");
    responseHeader.set("x-head", "one");
    responseTrailer.set("x-tail", "end");
    if (text === "empty") return;
    yield bytes(`${text} 1`);
    if (text === "refused") throw refusal();
    if (text === "broken") throw new TypeError("secret");
    yield text === "long" ? bytes("a".repeat(5_000)) : bytes(`${text} 2`);
  },
};

const marking: Interceptor = (next) => async (request) => {
  const response = await next(request);
  response.header.set("x-interceptor", "was here");
  return response;
};
const options = { interceptors: [createFailureInterceptor({ error() {} }), marking], readMaxBytes: 10_000 };
const routes = (router: ConnectRouter) => router.service(EchoService, implementation);

const connects = () =>
  connectNodeAdapter({
    routes,
    ...options,
    jsonOptions: { ignoreUnknownFields: false },
    requestGate,
    acceptCompression: [compressionGzip, compressionBrotli],
  });

let own: HttpServer;
const others = { "1.1": createServer(connects()), "2": createHttp2Server(connects()) };
const sessions: ClientHttp2Session[] = [];

beforeAll(async () => {
  own = await serveOnHttp({ routes: (router) => void routes(router), ...options });
  for (const server of Object.values(others)) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
});
afterAll(async () => {
  for (const session of sessions) session.close();
  await own[Symbol.asyncDispose]();
  for (const server of Object.values(others)) server.close();
});

test.each(["1.1", "2"])("the head of a stream that is silent comes over HTTP/%s after a second", async (version) => {
  const headers = { "content-type": "application/connect+proto" };
  const path = "/toolbus.echo.v1.EchoService/ServerStream";
  const { port } = own;
  const begun = performance.now();
  if (version === "2") {
    const session = connect(`http://127.0.0.1:${port}`);
    sessions.push(session);
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    stream.end(encodeEnvelope(0, binaryOf("silent")));
    const [{ ":status": status }] = await once(stream, "response");
    expect(status).toBe(200);
    stream.close();
  } else {
    const request = openRequest({ port, method: "POST", path, headers });
    request.end(encodeEnvelope(0, binaryOf("silent")));
    const [response] = await once(request, "response");
    expect(response.statusCode).toBe(200);
    request.destroy();
  }
  expect(performance.now() - begun).toBeGreaterThan(900);
});

interface Asked {
  path?: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

async function answerOverHttp1(port: number, { path = "Unary", headers, body }: Asked) {
  const request = openRequest({ port, method: "POST", path: `/toolbus.echo.v1.EchoService/${path}`, headers });
  request.end(body);
  const [response] = await once(request, "response");
  const chunks = await response.toArray();
  const {
    date,
    "content-length": length,
    "transfer-encoding": coding,
    "keep-alive": idle,
    ...fields
  } = response.headers;
  return { status: response.statusCode, fields, body: Buffer.concat(chunks).toString("latin1") };
}

const sessionsByPort = new Map<number, ClientHttp2Session>();

async function answerOverHttp2(port: number, { path = "Unary", headers, body }: Asked) {
  const session = sessionsByPort.get(port) ?? connect(`http://127.0.0.1:${port}`);
  if (!sessionsByPort.has(port)) sessions.push(session);
  sessionsByPort.set(port, session);
  const stream = session.request({ ":method": "POST", ":path": `/toolbus.echo.v1.EchoService/${path}`, ...headers });
  stream.end(body);
  const [{ date, "content-length": length, ...fields }] = await once(stream, "response");
  const chunks = await stream.toArray();
  return { fields: { ...fields }, body: Buffer.concat(chunks).toString("latin1") };
}

const answersOver = { "1.1": answerOverHttp1, "2": answerOverHttp2 };

const proto = { "content-type": "application/proto" };
const json = { "content-type": "application/json" };
const protoStream = { "content-type": "application/connect+proto" };
const jsonStream = { "content-type": "application/connect+json" };
const binaryOf = (text: string) => Buffer.from([0x0a, text.length, ...Buffer.from(text)]);
const jsonOf = (text: string) => Buffer.from(JSON.stringify(Buffer.from(text).toString("base64")));
const zip = "gzip, br";

const unary = ["plain", "refused", "broken", "long"].flatMap((text): [string, Asked][] => [
  [`unary, binary, ${text}`, { headers: { ...proto, "x-ask": "much" }, body: binaryOf(text) }],
  [`unary, JSON, ${text}`, { headers: json, body: jsonOf(text) }],
  [`unary, compressed, ${text}`, { headers: { ...proto, "accept-encoding": zip }, body: binaryOf(text) }],
]);
const streams = ["plain", "refused", "broken", "long", "empty"].flatMap((text): [string, Asked][] => [
  [`stream, binary, ${text}`, { path: "ServerStream", headers: protoStream, body: encodeEnvelope(0, binaryOf(text)) }],
  [`stream, JSON, ${text}`, { path: "ServerStream", headers: jsonStream, body: encodeEnvelope(0, jsonOf(text)) }],
  [
    `stream, compressed, ${text}`,
    {
      path: "ServerStream",
      headers: { ...protoStream, "connect-accept-encoding": "br" },
      body: encodeEnvelope(0, binaryOf(text)),
    },
  ],
]);
const odd: [string, Asked][] = [
  ["a deadline", { headers: { ...proto, "connect-timeout-ms": "20" }, body: binaryOf("slow") }],
  ["a deadline that is over", { headers: { ...proto, "connect-timeout-ms": "0" }, body: binaryOf("plain") }],
  ["another version", { headers: { ...proto, "connect-protocol-version": "2" }, body: binaryOf("plain") }],
  ["this version", { headers: { ...proto, "connect-protocol-version": "1" }, body: binaryOf("plain") }],
  ["a deadline that is none", { headers: { ...proto, "connect-timeout-ms": "soon" }, body: binaryOf("plain") }],
  ["no message", { headers: proto, body: Buffer.of(0xff, 0xff) }],
  ["no JSON", { headers: json, body: Buffer.from("{") }],
  ["nothing at all", { headers: proto, body: Buffer.alloc(0) }],
  ["a compressed request", { headers: { ...proto, "content-encoding": "gzip" }, body: gzipSync(binaryOf("plain")) }],
  ["an unknown compression", { headers: { ...proto, "content-encoding": "lzw" }, body: binaryOf("plain") }],
  ["more than may be read", { headers: proto, body: Buffer.alloc(10_001) }],
  ["exactly what may be read", { headers: json, body: Buffer.from(JSON.stringify("A".repeat(9_996))) }],
  ["two requests", { path: "ServerStream", headers: protoStream, body: twice(encodeEnvelope(0, binaryOf("plain"))) }],
  [
    "half a request",
    { path: "ServerStream", headers: protoStream, body: encodeEnvelope(0, binaryOf("plain")).subarray(0, 8) },
  ],
  ["no request", { path: "ServerStream", headers: protoStream, body: Buffer.alloc(0) }],
  [
    "a compressed message",
    {
      path: "ServerStream",
      headers: { ...protoStream, "connect-content-encoding": "gzip" },
      body: encodeEnvelope(1, gzipSync(binaryOf("plain"))),
    },
  ],
];

function twice(part: Uint8Array): Uint8Array {
  return Buffer.concat([part, part]);
}

describe.each(["1.1", "2"] as const)("over HTTP/%s", (version) => {
  test.each([...unary, ...streams, ...odd])(
    "what is answered to %s is what Connect's handlers answer",
    async (_, asked) => {
      const ask = answersOver[version];
      const [answer, expected] = await Promise.all([
        ask(own.port, asked),
        ask((others[version].address() as AddressInfo).port, asked),
      ]);
      expect(answer).toEqual(expected);
    },
  );
});
