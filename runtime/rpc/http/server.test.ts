import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { bytes, echo, openServer } from "./testing/echo-server.ts";

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

test("a port that is taken is refused in words", async () => {
  const { port } = await openServer();
  await expect(openServer(echo, { port })).rejects.toMatchObject({
    code: "failed_precondition",
    message: `cannot listen on 127.0.0.1:${port}: the port is taken by another process`,
  });
});
