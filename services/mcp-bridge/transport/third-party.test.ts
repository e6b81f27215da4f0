import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { call, openBridge, scope } from "../testing/bridge.ts";
import { oddServer } from "../testing/connection.ts";

/** A server of its own process for each connection, behind a socket. */
async function openSocketServer() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const child = spawn(process.execPath, [oddServer], { stdio: ["pipe", "pipe", "ignore"] });
    socket.on("error", () => {}); // it may be cut
    socket.on("close", () => child.kill("SIGKILL"));
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `lines://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

test("ORCH-13 a transport of a third party's module, named by the environment, reaches a server behind a socket", async () => {
  await using bus = await openTestBus();
  await using server = await openSocketServer();
  const module = fileURLToPath(new URL("../testing/lines.ts", import.meta.url));
  await using bridge = await openBridge(bus, { TOOLBUS_MCP_TRANSPORTS: module });
  const source = { name: "far", config: { url: server.url } };
  const { sources, tools } = await bridge.provider.getProvidedTools({ scope, sources: [source] });
  expect(sources).toMatchObject([{ source: "far", available: true }]);
  expect(tools.map(({ tool }) => tool?.name)).toContain("echo");
  expect((await call(bridge, source, "echo", { text: "by lines" })).output).toBe("by lines");
  expect(server.connections).toBeGreaterThan(0);
});
