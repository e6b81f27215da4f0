import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { until } from "#runtime/time/until.ts";
import { bytes, echo, openRaw, openServer, textOf } from "../../testing/echo-server.ts";
import { createSelfSigned } from "../../testing/self-signed.ts";

test.each(["1.1", "2"] as const)(
  "SEC-6 on a connection beyond its address' share, the first request is told so: HTTP/%s",
  async (httpVersion) => {
    await using server = await openServer(echo, { connectionsOfAddress: 2 });
    const held = [await openRaw(server), await openRaw(server)];
    const { unary } = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion }));
    const failure = failureFromConnectError(await unary(bytes("x")).catch((error: unknown) => error));
    expect(failure).toMatchObject({ code: "resource_exhausted", reason: "SHARE_EXCEEDED" });
    expect(failure.message).toMatch(/2 open connections; send requests over one connection/);
    for (const { socket } of held) socket.destroy();
    const answered = async () => textOf(await unary(bytes("y")).catch(() => bytes("")));
    expect(await until(answered)).toBe("y");
  },
);

test.each([false, true])(
  "SEC-6 beyond twice the share a connection is cut without a word, TLS: %s",
  async (isSecure) => {
    const tls = isSecure ? { tls: createSelfSigned() } : {};
    await using server = await openServer(echo, { connectionsOfAddress: 2, ...tls });
    for (const _ of [1, 2, 3, 4]) await openRaw(server);
    const { socket, text } = await openRaw(server);
    const closed = once(socket, "close", { signal: AbortSignal.timeout(4_000) }); // before a surplus one is cut
    if (!isSecure) socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await closed;
    expect(text()).toBe("");
  },
);

test("SEC-6 from half of the share on, a connection of HTTP/1.1 ends with its answer, and idle ones keep nobody out", async () => {
  await using server = await openServer(echo, { connectionsOfAddress: 4 });
  const said = async () => {
    const { socket, text } = await openRaw(server);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => /\r\n\r\n/.test(text()));
    return /^connection: (.*)\r$/im.exec(text())?.[1];
  };
  expect([await said(), await said(), await said(), await said()]).toEqual([
    "keep-alive",
    "keep-alive",
    "close",
    "close",
  ]);
});
