import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Share } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { readConfig } from "./config.ts";
import { holderOf, keyOf } from "./servers/key.ts";
import { withSecrets } from "./servers/secrets.ts";
import { parseServer } from "./servers/source.ts";
import { startTimeOf } from "./servers/start-time.ts";
import { serverFrom } from "./testing/connection.ts";

const secretNamed = (name: string) => `$${`{secret:${name}}`}`;

test("the environment that servers inherit is an allow-list, and secrets are read by their prefix", () => {
  const env = { PATH: "/bin", AWS_KEY: "x", EXTRA: "y", TOOLBUS_MCP_ENVIRONMENT: "EXTRA", TOOLBUS_SECRET_KEY: "k" };
  const config = readConfig(env);
  expect(config.environment).toEqual({ PATH: expect.stringMatching(/^\/bin:/), EXTRA: "y" });
  expect([...config.secrets]).toEqual([["KEY", "k"]]);
});

test("ORCH-6 servers find the suite's Node and uv behind what the machine has", () => {
  const [first, node = "", uv = ""] = readConfig({ PATH: "/bin" }).environment.PATH?.split(":") ?? [];
  expect(first).toBe("/bin");
  expect(join(node, "node")).toBe(process.execPath);
  expect(join(uv, "uv")).toMatch(/\/toolbus\/uv\/.*\/bin\/uv$/);
});

test("ORCH-6 a server whose command may have to fetch it first has five minutes, unless something says otherwise", () => {
  const ofCommand = (command: string, ...args: string[]) =>
    startTimeOf(serverFrom({ name: "s", command, args }), readConfig({}));
  const words = [
    "npx -y x",
    "/usr/bin/npx x",
    "uvx x",
    "bunx x",
    "pnpm dlx x",
    "docker run -i x",
    "uv --quiet run x.py",
    "go run example.com/x@v1",
    "deno run jsr:x",
    "dnx x",
  ];
  for (const [command = "", ...args] of words.map((text) => text.split(" ")))
    expect(ofCommand(command, ...args).ms, command).toBe(300_000);
  expect(ofCommand("npx", "x").installer).toBe("npx");
  for (const [command = "", ...args] of [
    ["node", "npx"],
    ["pnpm", "start"],
    ["docker", "exec", "run"],
    ["go", "version"],
  ])
    expect(ofCommand(command, ...args)).toEqual({ ms: 5_000 });
  const own = serverFrom({ name: "s", command: "npx", startupTimeout: durationFromMs(7) });
  expect(startTimeOf(own, readConfig({})).ms).toBe(7);
});

test("ORCH-6 a server has 5 s to start, unless the environment says otherwise", () => {
  expect(readConfig({}).startupTimeoutMs).toBe(5_000);
  expect(readConfig({ TOOLBUS_MCP_STARTUP_TIMEOUT: "8s" }).startupTimeoutMs).toBe(8_000);
});

test("every fault of the configuration is named", () => {
  const env = { TOOLBUS_MCP_IDLE_TIMEOUT: "soon", TOOLBUS_MCP_MAX_MESSAGE_BYTES: "1" };
  expect(() => readConfig(env)).toThrow(/TOOLBUS_MCP_IDLE_TIMEOUT.*TOOLBUS_MCP_MAX_MESSAGE_BYTES/);
});

test("TOOL-14 a source's configuration is read in its JSON form, and a fault in it is named", () => {
  const server = parseServer("s", { command: "x", allowedTools: ["a"], healthCheck: { intervalMs: 5, timeoutMs: 2 } });
  expect(server).toMatchObject({
    name: "s",
    allowedTools: { names: ["a"] },
    healthCheck: { interval: durationFromMs(5), timeout: durationFromMs(2) },
  });
  expect(parseServer("s", { command: "x", allowedTools: [] }).allowedTools).toMatchObject({ names: [] });
  expect(parseServer("s", { command: "x" }).allowedTools).toBeUndefined();
  expect(() => parseServer("s", { comand: "x" })).toThrow(/comand/);
  const healthCheck = { interval: "5s", intervalMs: 5 };
  expect(() => parseServer("s", { command: "x", healthCheck })).toThrow(/healthCheck: interval and intervalMs/);
  expect(() => parseServer("s", { command: "x", share: "everybody" })).toThrow(/share|Share/);
  for (const config of [{ transport: "stdio" }, { url: "http://x", command: "x" }, { args: ["x"] }, { url: "" }])
    expect(() => parseServer("s", config)).toThrow(/either a url or a command/);
  expect(() => parseServer("s", { url: "http://x", env: { A: "1" } })).toThrow(/args and env go with a command/);
  expect(() => parseServer("s", { command: "x", headers: { A: "1" } })).toThrow(/headers go with a url/);
  expect(() => parseServer("s", { command: "x".repeat(5_000) })).toThrow(/refused: command: /);
  const stored = { http: { url: "http://x", headers: { A: "1" } } };
  expect(parseServer("s", { url: "http://x", headers: { A: "1" } })).toEqual(parseServer("s", stored));
});

test("ORCH-6 a connection's key tells holders and configurations apart, and nothing else", () => {
  const server = (given: object) => serverFrom({ name: "s", command: "x", ...given });
  const scope: { sessionId: string; agent: string; runId?: string } = { sessionId: "s1", agent: "a1" };
  const key = (given: object, of = scope, isOfRun = false) =>
    keyOf(server(given), holderOf(server(given), { runId: "", ...of }, isOfRun));
  const [one, other] = ["r1", "r2"].map((runId) => key({}, { ...scope, runId }, true));
  expect(new Set([one, other, key({}), key({}, { ...scope, runId: "r1" })]).size).toBe(3);
  expect(key({ env: { A: "1", B: "2" } })).toBe(key({ env: { B: "2", A: "1" } }));
  expect(key({})).not.toBe(key({ args: ["y"] }));
  expect(key({})).not.toBe(key({}, { sessionId: "s2", agent: "a1" }));
  expect(key({}, { sessionId: "s", agent: "1a" })).not.toBe(key({}, { sessionId: "s1", agent: "a" }));
  expect(key({ share: Share.AGENT })).toBe(key({ share: Share.AGENT }, { sessionId: "s2", agent: "a1" }));
  expect(key({ share: Share.GLOBAL })).toBe(key({ share: Share.GLOBAL }, { sessionId: "s2", agent: "a2" }));
});

test("secrets are resolved in environment and headers, a missing one is named, and none is shown", () => {
  const secrets = new Map([["KEY", "hunter22"]]);
  const server = serverFrom({ command: "x", env: { A: secretNamed("KEY") } });
  const remote = serverFrom({ url: "http://x", headers: { B: `Bearer ${secretNamed("KEY")}` } });
  const resolved = [server, remote].map((one) => withSecrets(one, secrets).transport.value);
  expect(resolved).toMatchObject([{ env: { A: "hunter22" } }, { headers: { B: "Bearer hunter22" } }]);
  expect(server.transport.value).toMatchObject({ env: { A: secretNamed("KEY") } });
  expect(() => withSecrets(server, new Map())).toThrow(/TOOLBUS_SECRET_KEY/);
  expect(createRedaction(secrets)("it said hunter22")).toBe("it said [secret KEY]");
});

test("SEC-3 confined tools see neither the keys of the bus nor the secrets of this service, also under `toolbus serve`", () => {
  const { confinement } = readConfig({
    TOOLBUS_BUS_CREDENTIALS: "/run/bus",
    TOOLBUS_SECRETS_DIRECTORY: "/run/secrets",
  });
  expect(confinement.privatePaths).toEqual(expect.arrayContaining(["/run/bus", "/run/secrets"]));
});
