import { once } from "node:events";
import { createServer, type Http2Server } from "node:http2";
import { type AddressInfo, createServer as createSilentServer, type Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { openConnection } from "./connection.ts";

async function addressOf(server: Http2Server | ReturnType<typeof createSilentServer>): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A gateway whose process ends while it has a request. */
async function openDyingGateway(end: (socket: Socket) => void) {
  const server = createServer();
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => void sockets.push(socket));
  server.on("stream", () => sockets.forEach(end));
  server.on("sessionError", () => {});
  const url = await addressOf(server);
  return { url, [Symbol.dispose]: () => void server.close() };
}

const lost = (url: string) => ({ code: Code.Unavailable, rawMessage: expect.stringContaining(`connection to ${url}`) });

const ends: [string, (socket: Socket) => void][] = [
  ["closes the connection", (socket) => socket.destroy()],
  ["resets the connection", (socket) => socket.resetAndDestroy()],
];

test.each(ends)("BUS-6 a call is unavailable if its gateway %s: nobody has canceled it", async (_, end) => {
  using gateway = await openDyingGateway(end);
  const connection = openConnection({ url: gateway.url });
  await expect(connection.client(AgentService).listAgents({})).rejects.toMatchObject(lost(gateway.url));
});

test.each(ends)("BUS-6 so is a stream if it %s", async (_, end) => {
  using gateway = await openDyingGateway(end);
  const read = async () => {
    for await (const _ of openConnection({ url: gateway.url }).client(AuditService).watchAuditEvents({}));
  };
  await expect(read()).rejects.toMatchObject(lost(gateway.url));
});

test("who cancels by itself is told that", async () => {
  const silent = createSilentServer();
  const url = await addressOf(silent);
  const asked = openConnection({ url })
    .client(AgentService)
    .listAgents({}, { signal: AbortSignal.timeout(50) });
  await expect(asked).rejects.toMatchObject({ code: Code.Canceled });
  silent.close();
});

test("a gateway that is frozen is noticed", async () => {
  const silent = createSilentServer();
  const url = await addressOf(silent);
  await expect(openConnection({ url }).client(AgentService).listAgents({})).rejects.toMatchObject(lost(url));
  silent.close();
}, 15_000);
