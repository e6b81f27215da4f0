import { once } from "node:events";
import { connect } from "node:net";
import { Code, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { until } from "#runtime/time/until.ts";
import { signalOf } from "./connect/reply.ts";
import { answerThrown } from "./refusal.ts";
import { bytes, echo, openRaw, openServer, textOf } from "./testing/echo-server.ts";
import { createSelfSigned } from "./testing/self-signed.ts";

/** A handler that waits until the test lets it answer. */
function createGate() {
  const entered = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  return {
    entered: entered.promise,
    open: open.resolve,
    pass() {
      entered.resolve();
      return open.promise;
    },
  };
}

describe("stopping", () => {
  test.each(["1.1", "2"] as const)("finishes what is in flight and takes nothing new: HTTP/%s", async (httpVersion) => {
    const gate = createGate();
    const server = await openServer({
      async unary(request) {
        await gate.pass();
        return request;
      },
    });
    const client = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion }));
    const answer = client.unary(bytes("in flight"));
    await gate.entered;
    const stopped = server[Symbol.asyncDispose]();
    const late = connect(server.port, "127.0.0.1");
    await expect(once(late, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    gate.open();
    expect(textOf(await answer)).toBe("in flight");
    await stopped;
  });

  test("closes connections that are idle or have not said a word", async () => {
    const server = await openServer(echo, { drainTimeoutMs: 60_000 });
    const client = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion: "2" }));
    await client.unary(bytes("x"));
    await openRaw(server);
    const kept = await openRaw(server);
    kept.socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => kept.text().includes("404"));
    await server[Symbol.asyncDispose]();
  });

  test("closes connections that are idle or have not ended their TLS handshake", async () => {
    const tls = createSelfSigned();
    const server = await openServer(echo, { drainTimeoutMs: 60_000, tls });
    const options = { baseUrl: server.url, nodeOptions: { ca: tls.cert } };
    const client = createClient(EchoService, createConnectTransport({ ...options, httpVersion: "2" }));
    await client.unary(bytes("x"));
    const { socket } = await openRaw(server);
    const closed = once(socket, "close");
    await server[Symbol.asyncDispose]();
    await closed;
  });

  test("has what serves a path answer once its time is over", async () => {
    const entered = Promise.withResolvers<void>();
    const server = await openServer(echo, {
      drainTimeoutMs: 20,
      fallback(request, response) {
        const signal = signalOf(response);
        signal.addEventListener("abort", () => answerThrown(request, response, signal.reason));
        entered.resolve();
        return true;
      },
    });
    const asked = fetch(`${server.url}/waits`);
    await entered.promise;
    await server[Symbol.asyncDispose]();
    const answer = await asked;
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: "unavailable", message: "the server is stopping" });
  });

  test.each([
    ["Connect over HTTP/1.1", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
    ["Connect over HTTP/2", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" })],
    ["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
  ])("ends a unary call with unavailable once its time is over: %s", async (_, transport) => {
    const entered = Promise.withResolvers<void>();
    const implementation = {
      async unary(_request: unknown, { signal }: HandlerContext) {
        entered.resolve();
        await once(signal, "abort");
        throw signal.reason;
      },
    };
    const server = await openServer(implementation, { drainTimeoutMs: 20 });
    const answer = createClient(EchoService, transport(server.url)).unary(bytes("x"));
    const told = expect(answer).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: "the server is stopping" });
    await entered.promise;
    await server[Symbol.asyncDispose]();
    await told;
  });

  test("ends calls that go on for ever with unavailable once its time is over, and cuts those that do not listen", async () => {
    const gate = createGate();
    const server = await openServer(
      {
        async *serverStream(request, context) {
          yield request;
          await new Promise((_resolve, reject) => {
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
          });
        },
        async unary() {
          await gate.pass();
          return bytes("");
        },
      },
      { drainTimeoutMs: 20 },
    );
    const client = createClient(EchoService, createGrpcTransport({ baseUrl: server.url }));
    const deaf = client.unary(bytes("x")).catch((error: unknown) => ConnectError.from(error));
    const stream = client.serverStream(bytes("x"))[Symbol.asyncIterator]();
    await stream.next();
    await gate.entered;
    const ended = expect(stream.next()).rejects.toMatchObject({
      code: Code.Unavailable,
      rawMessage: "the server is stopping",
    });
    await server[Symbol.asyncDispose]();
    await ended;
    expect(await deaf).toBeInstanceOf(ConnectError);
  });
});
