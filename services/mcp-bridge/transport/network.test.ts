// ORCH-6: servers over SSE, WebSocket and TCP, each behind a socket of its own.

import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import { callThrough, openConnection, serverFrom } from "../testing/connection.ts";
import { listen } from "../testing/servers/http-server.ts";
import { openTcpServer, openWebSocketServer, type SocketServer } from "../testing/servers/socket-server.ts";
import { openSseServer } from "../testing/servers/sse-server.ts";
import { createTransportRegistry } from "./registry.ts";
import { urlOfServer } from "./url.ts";

const noSignal = new AbortController().signal;
type Open = () => Promise<SocketServer>;
const servers: [string, { transport?: string }, Open][] = [
  ["SSE", { transport: "sse" }, openSseServer],
  ["WebSocket", {}, () => openWebSocketServer({ subprotocol: true })],
  ["WebSocket without the subprotocol", {}, () => openWebSocketServer({ subprotocol: false })],
  ["TCP", {}, openTcpServer],
];

describe.each(servers)("a server over %s", (name, fields, open) => {
  const sourceOf = ({ url }: SocketServer) => ({ name: "far", url, ...fields });

  test("ORCH-6 is listed and called, many at a time, with the headers of its configuration", async () => {
    await using server = await open();
    const headers = { "x-token": `$${"{secret:KEY}"}` };
    await using connection = openConnection({ ...sourceOf(server), headers }, { secrets: { KEY: "k1" } });
    await connection.settled(noSignal);
    expect(connection.offer().tools.map(({ tool }) => tool?.name)).toContain("echo");
    const texts = Array.from({ length: 50 }, (_, index) => `é${index}\n`);
    const outputs = await Promise.all(texts.map((text) => callThrough(connection, "echo", { text })));
    expect(outputs.map(({ output }) => output)).toEqual(texts);
    if (name !== "TCP") expect(server.headers["x-token"]).toBe("k1");
  });

  test("ORCH-6 that is cut off fails what it held, its outcome unknown, and is connected to again", async () => {
    await using server = await open();
    await using connection = openConnection(sourceOf(server));
    await callThrough(connection, "echo", { text: "before" });
    const held = callThrough(connection, "wait");
    const soon = AbortSignal.timeout(200);
    await Promise.race([held.catch(() => {}), new Promise((resolve) => soon.addEventListener("abort", resolve))]);
    server.cut();
    await expect(held).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
    await connection.settled(noSignal);
    await expect
      .poll(() => callThrough(connection, "echo", { text: "after" }).catch(() => undefined), { timeout: 10_000 })
      .toMatchObject({ output: "after" });
    expect(server.connections).toBeGreaterThan(1);
  });

  test("SEC-5 whose answer is larger than a message may be fails the call", async () => {
    await using server = await open();
    await using connection = openConnection(sourceOf(server), { maxMessageBytes: 64 * 1024 });
    await connection.settled(noSignal);
    await expect(callThrough(connection, "big", { bytes: 2 ** 20 })).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
    });
  });

  test("SEC-5 at an address that the guard refuses is not connected to", async () => {
    await using server = await open();
    const source = serverFrom(sourceOf(server));
    const { transport } = await createTransportRegistry()(source).open(source, {
      ...{ environment: {}, confinement: undefined, maxMessageBytes: 1e6, logger: pino({ level: "silent" }) },
      ...{ guard: createAddressGuard([]), redact: (text: string) => text },
    });
    await transport.start();
    const sent = transport.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    const why = await sent.catch((error: Error) => `${error.message} ${error.cause}`);
    expect(why).toMatch(/not a public one/);
    await transport.close();
    expect(server.connections).toBe(0);
  });

  test("ORCH-6 that is not there is unavailable, with the reason", async () => {
    const server = await open();
    await server[Symbol.asyncDispose]();
    await using connection = openConnection(sourceOf(server));
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({
      available: false,
      reason: expect.stringMatching(/ECONNREFUSED/),
    });
  });
});

test("ORCH-6 a message that a server over SSE holds when its stream breaks fails for that reason", async () => {
  let stream: ServerResponse | undefined;
  await using server = await listen((request, response) => {
    if (request.method === "POST") return stream?.destroy();
    stream = response.writeHead(200, { "content-type": "text/event-stream" });
    stream.write("event: endpoint\ndata: /messages\n\n");
  });
  await using connection = openConnection({ name: "held", url: server.url, transport: "sse" });
  await connection.settled(noSignal);
  expect(connection.offer().status.reason).toMatch(/: terminated/);
});

test("SEC-5 a server over SSE that wants its messages at another origin gets none", async () => {
  await using other = await openSseServer();
  await using server = await openSseServer({ foreign: other.url });
  await using connection = openConnection({ name: "sly", url: server.url, transport: "sse" });
  await connection.settled(noSignal);
  expect(connection.offer().status).toMatchObject({
    available: false,
    reason: expect.stringMatching(/another origin/),
  });
  expect(other.headers).toEqual({});
});

test("ORCH-6 who asks for the address of a program is told that it has none", () => {
  const server = create(McpServerSchema, { name: "files", transport: { case: "stdio", value: { command: "true" } } });
  expect(() => urlOfServer(server)).toThrow("the server files is a program, and nobody logs in to it");
});

test.each([
  ["WebSocket", () => openWebSocketServer({ subprotocol: true })],
  ["TCP", openTcpServer],
] as const)("ORCH-8 a server over %s that vanished without a word is found out", async (_, open) => {
  const asked: [number | undefined, unknown[]][] = [];
  const { setKeepAlive } = Socket.prototype;
  vi.spyOn(Socket.prototype, "setKeepAlive").mockImplementation(function (this: Socket, ...given) {
    asked.push([this.remotePort, given]);
    return setKeepAlive.apply(this, given);
  });
  await using server = await open();
  await using connection = openConnection({ name: "far", url: server.url });
  await callThrough(connection, "echo", { text: "there" });
  const isToServer = ([port]: [number | undefined, unknown]) =>
    port === undefined || port === Number(new URL(server.url).port);
  expect(asked.filter(isToServer).map(([, given]) => given)).toEqual([[true, 15_000]]);
  vi.restoreAllMocks();
});
