import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { call, openBridge, scope } from "../../testing/bridge.ts";
import { openTcpServer } from "../../testing/servers/socket-server.ts";

test("ORCH-13 a transport of a third party's module, named by the environment, reaches a server behind a socket", async () => {
  await using bus = await openTestBus();
  await using server = await openTcpServer("lines");
  const module = fileURLToPath(new URL("./lines.ts", import.meta.url));
  await using bridge = await openBridge(bus, { TOOLBUS_MCP_TRANSPORTS: module });
  const source = { name: "far", config: { url: server.url } };
  const { sources, tools } = await bridge.provider.getProvidedTools({ scope, sources: [source] });
  expect(sources).toMatchObject([{ source: "far", available: true }]);
  expect(tools.map(({ tool }) => tool?.name)).toContain("echo");
  expect((await call(bridge, source, "echo", { text: "by lines" })).output).toBe("by lines");
  expect(server.connections).toBeGreaterThan(0);
});
