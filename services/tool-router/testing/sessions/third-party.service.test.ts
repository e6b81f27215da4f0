import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { fileURLToPath } from "node:url";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { until } from "#runtime/time/until.ts";
import { ended, FakeProvider } from "../fakes/fake-provider.ts";
import { openReader, type Reader } from "../peers/reader.ts";

let suite: Reader;
const provider = new FakeProvider();
const echo = provider.answer;
const servers: { server: Server; close: () => void }[] = [];

beforeAll(async () => {
  suite = await openReader();
  provider.tools = [{ source: "shop", tool: { name: "buy" } }];
  const handler = connectNodeAdapter({ routes: provider.routes });
  const http1 = createServer(handler);
  servers.push({ server: http1, close: () => http1.closeAllConnections() });
  const sessions = new Set<{ destroy(): void }>();
  const http2 = createHttp2Server(handler).on("session", (session) => sessions.add(session));
  servers.push({ server: http2, close: () => [...sessions].forEach((session) => void session.destroy()) });
  for (const { server } of servers) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await suite[Symbol.asyncDispose]();
  for (const { server, close } of servers) {
    server.close();
    close();
  }
});

test("ORCH-4 a provider that is added later takes over no name of another, whatever it is called", async () => {
  for (const name of ["zeta", "alpha"]) {
    const own = new FakeProvider();
    own.tools = [{ tool: { name: "ping" } }];
    own.answer = async function* () {
      yield { event: { case: "result", value: { outputJson: JSON.stringify(name) } } };
    };
    suite.use(await serveOnNats(suite.bus, { service: name, routes: own.routes, drainTimeoutMs: 1 }));
    await suite.clients.providers.applyProvider({ provider: { name, address: { case: "service", value: name } } });
    await suite.clients.agents.applyAgent({ agent: { name: "pinger", tools: { use: ["ping"] } } });
    await until(async () => {
      const { tools } = await suite.clients.router.listTools({ scope: { case: "agent", value: "pinger" } });
      return tools.some(({ reference, available }) => reference === "ping" && available);
    });
    const { output } = await suite.clients.call({ sessionId: await suite.openSession("pinger"), name: "ping" });
    expect(output).toBe("zeta");
  }
});

test.each(["http", "grpc"])(
  "KIND-2 a third party's provider at a %s URL is a provider like any other",
  async (scheme) => {
    const { port } = servers[scheme === "http" ? 0 : 1]!.server.address() as AddressInfo;
    const name = `acme-${scheme}`;
    await suite.clients.providers.applyProvider({
      provider: { name, address: { case: "url", value: `${scheme}://127.0.0.1:${port}` } },
    });
    const sources = [{ name: "shop", provider: name }];
    await suite.clients.agents.applyAgent({
      agent: { name: `shopper-${scheme}`, sources, tools: { use: ["@shop/*"] } },
    });
    const sessionId = await suite.openSession(`shopper-${scheme}`);
    const { events, output } = await suite.clients.call({ sessionId, name: "shop__buy", argumentsJson: '{"n":1}' });
    expect(events.map((event) => event.case)).toEqual(["progress", "result"]);
    expect(output).toEqual({ n: 1 });
    provider.answer = async function* (_request, signal) {
      yield { event: { case: "progress", value: { progress: 1, total: 2 } } };
      await ended(signal);
    };
    const leaving = new AbortController();
    const calling = suite.clients.call({ sessionId, name: "shop__buy", callId: `left-${scheme}` }, leaving.signal);
    await until(() => provider.calls.some(({ callId }) => callId === `left-${scheme}`));
    leaving.abort();
    await expect(calling).rejects.toThrow(/abort|cancel/);
    await until(() => provider.canceled.includes(`left-${scheme}`), { what: "the provider to be told" });
    provider.answer = echo;
    await expect(
      suite.clients.providers.applyProvider({ provider: { name: "mcp", address: { case: "service", value: "mine" } } }),
    ).rejects.toThrow(/belongs to the suite/);
  },
);

test.each([
  [undefined, /address/],
  [{ case: "service", value: "two words" } as const, /service/],
  [{ case: "url", value: "ftp://127.0.0.1" } as const, /url: must begin with http:\/\//],
])("KIND-2 a provider is not taken without a place that can be reached: %#", async (address, fault) => {
  const provider = { name: "lost", ...(address && { address }) };
  await expect(suite.clients.providers.applyProvider({ provider })).rejects.toThrow(fault);
});

test("KIND-2 LOOP-14 a call at an http URL whose provider freezes ends within seconds, with an unknown outcome", async () => {
  const program = fileURLToPath(new URL("../peers/http-provider.ts", import.meta.url));
  await using child = await openChildProcess({ command: process.execPath, args: [program], env: process.env });
  const lines = child.lines()[Symbol.asyncIterator]();
  const { value: port } = await lines.next();
  await suite.clients.providers.applyProvider({
    provider: { name: "frozen", address: { case: "url", value: `http://127.0.0.1:${port}` } },
  });
  const sources = [{ name: "shop", provider: "frozen" }];
  await suite.clients.agents.applyAgent({ agent: { name: "patient", sources, tools: { use: ["@shop/*"] } } });
  const sessionId = await suite.openSession("patient");
  const startedAt = performance.now();
  const events = suite.clients.router.callTool({ sessionId, name: "shop__buy" });
  const told: string[] = [];
  for await (const { event } of events) {
    told.push(event.case === "result" ? event.value.outputJson : `${event.case}`);
    if (event.case !== "progress") continue;
    await lines.next(); // it was asked whether it lives
    process.kill(child.pid, "SIGSTOP");
  }
  expect(told).toEqual(["progress", expect.stringMatching(/outcome_unknown: provider .*frozen.*fallen silent/)]);
  expect(performance.now() - startedAt).toBeLessThan(25_000); // its own time is 30 s
}, 60_000);

test("KIND-3 a tool of the catalog whose kind is a provider's own is called there, by the name of its type", async () => {
  const maker = new FakeProvider();
  suite.use(await serveOnNats(suite.bus, { service: "maker-service", routes: maker.routes, drainTimeoutMs: 1 }));
  await suite.clients.providers.applyProvider({
    provider: { name: "maker", address: { case: "service", value: "maker-service" } },
  });
  const tool = {
    name: "build",
    executionType: ExecutionType.CUSTOM,
    customType: { provider: "maker", toolType: "house" },
  };
  await suite.clients.catalogue.applyCatalogTool({ tool });
  await suite.clients.agents.applyAgent({ agent: { name: "builder", tools: { use: ["build"] } } });
  const sessionId = await suite.openSession("builder");
  const { output } = await suite.clients.call({ sessionId, name: "build", argumentsJson: '{"rooms":3}' });
  expect(output).toEqual({ rooms: 3 });
  expect(maker.calls).toMatchObject([{ tool: "house", scope: { sessionId, agent: "builder" } }]);
});
