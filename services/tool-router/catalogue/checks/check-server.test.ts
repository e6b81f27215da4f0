import { create, type JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { faultsOfServers } from "./check-server.ts";

const faultsOf = (config: JsonObject, hasOtherTransports = false) =>
  faultsOfServers(create(AgentSchema, { name: "a", sources: [{ name: "s", provider: "mcp", config }] }), {
    hasOtherTransports,
  });

test("TOOL-14 a transport that there is not is a fault of the agent, with its path", () => {
  const url = "http://127.0.0.1:1/mcp";
  for (const transport of ["http", "sse", "ws", "tcp"]) expect(faultsOf({ url, transport })).toEqual([]);
  expect(faultsOf({ command: "x", transport: "stdio" })).toEqual([]);
  expect(faultsOf({ url, transport: "htpp" })).toEqual([
    'sources[0].config.transport: "htpp" is none of stdio, http, sse, ws, tcp',
  ]);
  expect(faultsOf({ url: "htp://x" })).toEqual([
    "sources[0].config.url: begins with none of http:, https:, ws:, wss:, tcp:, unix:",
  ]);
});

test("TOOL-14 a transport that does not go with the server, and values that no server has, are faults too", () => {
  expect(faultsOf({ url: "http://x/", transport: "stdio" })).toEqual([
    "sources[0].config.transport: stdio needs a command, not a url",
  ]);
  expect(faultsOf({ command: "x", transport: "http" })).toEqual([
    "sources[0].config.transport: http needs a url, not a command",
  ]);
  expect(faultsOf({ url: "http://x/", command: "x" })).toEqual([
    "sources[0].config: a server needs either a url or a command",
  ]);
  expect(faultsOf({ command: "x", share: "everybody" })[0]).toMatch(/^sources\[0\]\.config\.share: /);
  expect(faultsOf({ command: "x", args: "y" })[0]).toMatch(/^sources\[0\]\.config: is no MCP server: .*args/);
  expect(faultsOf({ comand: "x" })[0]).toMatch(/is no MCP server: .*comand/);
  expect(faultsOf({ command: "x", headers: { a: "b" } })).toEqual([
    "sources[0].config: headers go with a url, not with a command",
  ]);
  expect(faultsOf({ url: "http://x/", args: ["y"] })).toEqual([
    "sources[0].config: args and env go with a command, not with a url",
  ]);
  expect(faultsOf({ command: "x".repeat(5_000) })[0]).toMatch(/^sources\[0\]\.config\.command: /);
  expect(faultsOf({ stdio: { command: "x".repeat(5_000) } })[0]).toMatch(/^sources\[0\]\.config\.stdio\.command: /);
});

test("ORCH-13 where third parties bring transports, names and schemes are theirs to choose", () => {
  expect(faultsOf({ url: "carrier-pigeon://x" }, true)).toEqual([]);
  expect(faultsOf({ url: "http://x/", transport: "pigeon" }, true)).toEqual([]);
  expect(faultsOf({}, false)).toEqual([]);
});
