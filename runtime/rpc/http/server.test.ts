import { once } from "node:events";
import { get as getByHttp, Agent as HttpAgent, type IncomingMessage, request as requestByHttp } from "node:http";
import { get as getByHttps, Agent as HttpsAgent } from "node:https";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { connectError } from "../../failure/connect.ts";
import { bytes, echo, openServer } from "./testing/echo-server.ts";
import { createSelfSigned } from "./testing/self-signed.ts";

test.each(["1.1", "2"] as const)("the calls of a peer that dies are aborted: HTTP/%s", async (httpVersion) => {
  const [entered, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await openServer({
    async *serverStream(_request, { signal }) {
      signal.addEventListener("abort", () => aborted.resolve());
      entered.resolve();
      await aborted.promise;
    },
  });
  let toServer: Socket | undefined;
  const cable = createServer((peer) => {
    toServer = connect(server.port, "127.0.0.1");
    peer.pipe(toServer).pipe(peer);
  }).listen(0, "127.0.0.1");
  await once(cable, "listening");
  const baseUrl = `http://127.0.0.1:${(cable.address() as AddressInfo).port}`;
  const client = createClient(EchoService, createConnectTransport({ baseUrl, httpVersion }));
  const reading = (async () => {
    for await (const _ of client.serverStream(bytes("x")));
  })();
  reading.catch(() => {}); // it breaks, which is no concern of the server
  await entered.promise;
  toServer?.end(); // what the kernel sends for a process that was killed
  await aborted.promise;
  toServer?.destroy();
  cable.close();
});

test.each([
  ["HTTP", undefined],
  ["HTTPS", createSelfSigned()],
] as const)("a proxy may keep a connection idle for ten minutes: %s", async (_, tls) => {
  const { port } = await openServer(echo, tls ? { tls } : {});
  const agent = new (tls ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const asked = (tls ? getByHttps : getByHttp)({ port, agent, path: "/", rejectUnauthorized: false });
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  agent.destroy();
  const [, seconds] = /timeout=(\d+)/.exec(`${answer.headers["keep-alive"]}`) ?? [];
  expect(Number(seconds)).toBeGreaterThan(600);
});

test("a message over the limit is refused as resource_exhausted", async () => {
  const { url } = await openServer(echo, { readMaxBytes: 1_000 });
  const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  await expect(client.unary({ value: new Uint8Array(1_001) })).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

test("a fallback that throws ends its own request, and no other", async () => {
  const warned: unknown[] = [];
  const { url } = await openServer(echo, {
    fallback(request, response) {
      if (request.url === "/bad") throw new Error("no such page");
      response.end("fine");
      return true;
    },
    logger: { warn: (...told: unknown[]) => warned.push(told[1]) },
  });
  const bad = await fetch(`${url}/bad`);
  expect(bad.status).toBe(500);
  const details = [{ type: "toolbus.error.v1.ErrorDetail", debug: { reason: "REASON_INTERNAL" } }];
  expect(await bad.json()).toMatchObject({ code: "internal", message: "internal error", details });
  expect(await (await fetch(`${url}/good`)).text()).toBe("fine");
  expect(warned).toEqual(["answering /bad failed: no such page"]);
});

test("other paths go to the fallback, and `before` sees every request first", async () => {
  const { url } = await openServer(echo, {
    before(request, response) {
      response.setHeader("x-seen", "yes");
      if (request.method !== "OPTIONS") return false;
      response.writeHead(204);
      response.end();
      return true;
    },
    fallback: (_request, response) => {
      response.writeHead(200);
      response.end("a page");
      return true;
    },
  });
  const page = await fetch(`${url}/`);
  expect([await page.text(), page.headers.get("x-seen")]).toEqual(["a page", "yes"]);
  expect((await fetch(`${url}/toolbus.echo.v1.EchoService/Unary`, { method: "OPTIONS" })).status).toBe(204);
});

test.each([
  ["http://gateway.example:81/toolbus.echo.v1.EchoService/Unary", "/toolbus.echo.v1.EchoService/Unary", 200],
  ["HTTP://gateway.example:81?page=2", "/?page=2", 404],
])("a client of a proxy names the whole URL, whose host counts: %s", async (target, path, status) => {
  const seen: unknown[] = [];
  const { port } = await openServer(echo, {
    before: ({ headers, url }) => seen.push(headers.host, url) === 0,
  });
  const headers = { host: "other.example", "content-type": "application/json" };
  const asked = requestByHttp({ port, path: target, method: "POST", headers }).end('"aGk="');
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  expect([answer.statusCode, ...seen]).toEqual([status, "gateway.example:81", path]);
  answer.destroy();
});

test.each(["GZIP", "x-gzip", "Identity"])("the name of a coding may be written as HTTP allows: %s", async (coding) => {
  const { url } = await openServer();
  const message = Buffer.from('"aGk="');
  const body = coding === "Identity" ? message : gzipSync(message);
  const headers = { "content-type": "application/json", "content-encoding": coding };
  const answer = await fetch(`${url}/toolbus.echo.v1.EchoService/Unary`, { method: "POST", headers, body });
  expect(await answer.json()).toBe("aGk=");
});

test("a port that is taken is refused in words", async () => {
  const { port } = await openServer();
  await expect(openServer(echo, { port })).rejects.toMatchObject({
    code: "failed_precondition",
    message: `cannot listen on 127.0.0.1:${port}: the port is taken by another process`,
  });
});

test.each([
  ["a long message", "no such tool: ".padEnd(16_000, "ü"), 0],
  ["many details", "not valid", 500],
])("BUS-3 an error with %s keeps its reason within what clients of gRPC take as trailers", async (_, text, count) => {
  const fieldViolations = Array.from({ length: count }, (_, n) => ({
    field: `outputs[${n}]`,
    message: "is no output",
  }));
  const { url } = await openServer({
    unary() {
      throw connectError("invalid_argument", text, { reason: "INVALID_REQUEST", fieldViolations });
    },
  });
  const answers = { Connect: createConnectTransport, gRPC: createGrpcTransport, "gRPC-Web": createGrpcWebTransport };
  for (const [protocol, open] of Object.entries(answers)) {
    const transport = open({ baseUrl: url, httpVersion: "2" });
    const error = ConnectError.from(
      await createClient(EchoService, transport)
        .unary(bytes("x"))
        .catch((error) => error),
    );
    const { reason, fieldViolations: told = [] } = error.findDetails(ErrorDetailSchema)[0] ?? {};
    expect({ code: error.code, reason }, protocol).toEqual({
      code: Code.InvalidArgument,
      reason: Reason.INVALID_REQUEST,
    });
    expect(error.rawMessage.slice(0, 9), protocol).toBe(text.slice(0, 9));
    if (protocol === "gRPC")
      expect(sizeOf(error.metadata)).toBeLessThan(8_192); // grpc-core refuses more, at random at first
    else expect([error.rawMessage, told.length], protocol).toEqual([text, count]);
  }
});

test("BUS-3 the words of an error come over gRPC with no more escaped than must be", async () => {
  const { url } = await openServer({
    unary() {
      throw connectError("not_found", 'no "a/b": 100 %, ü; ask', { reason: "TOOL_NOT_FOUND" });
    },
  });
  const transport = createGrpcTransport({ baseUrl: url });
  const ask = (path: string) => transport.unary({ ...EchoService.method.unary, name: path }, undefined, 1_000, {}, {});
  const messageOf = async (path: string) =>
    ConnectError.from(await ask(path).catch((e) => e)).metadata.get("grpc-message");
  expect(await messageOf("Unary")).toBe('no%20"a/b":%20100%20%25,%20%C3%BC;%20ask');
  expect(await messageOf("Nothing")).toMatch(/Nothing:%20it%20has%20Unary,/);
});

function sizeOf(fields: Headers): number {
  return [...fields].flat().reduce((bytes, text) => bytes + text.length, 0);
}
