import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { refuse, refuseField } from "../failure/failure.ts";
import { isObject } from "../schema/json-object.ts";
import { agentSpelling } from "./agent-spelling.ts";
import { contractJson } from "./spelling.ts";

/**
 * The agent that a file holds: the contract's form, and two short ways to write its sources, `mcp.servers` and `workers`.
 * Throws `invalid_argument` for a short way that holds no list of objects, and an `Error` for what the contract's form
 * does not know.
 */
export function agentFromFile(file: JsonObject): Agent {
  const { $schema: _, mcp = {}, workers = [], sources = [], ...rest } = file;
  if (!isObject(mcp)) return refuseField("mcp", "expected an object with servers");
  const servers = objectsOf(mcp.servers ?? [], "mcp.servers").map(({ pin = false, ...config }) => ({
    name: config.name ?? "",
    provider: "mcp",
    pin,
    config: contractJson(McpServerSchema, config, agentSpelling),
  }));
  const files = objectsOf(workers, "workers").map(({ name = "", pin = false, ...config }) => ({
    name,
    provider: "worker",
    pin,
    config,
  }));
  const all = [...servers, ...files, ...objectsOf(sources, "sources")];
  return fromJson(AgentSchema, { ...contractJson(AgentSchema, rest, agentSpelling), sources: all });
}

/** What is wrong with sources, with their places in the file: those of the short ways stand before all others. */
export function placedInFile({ mcp, workers }: JsonObject, faults: string): string {
  const lists = { "mcp.servers": isObject(mcp) ? mcp.servers : [], workers };
  const places = Object.entries(lists).flatMap(([name, list]) =>
    Array.isArray(list) ? list.map((_, index) => `${name}[${index}]`) : [],
  );
  return faults.replace(/\bsources\[(\d+)\](\.config)?/g, (_, index, config = "") => {
    return places[index] ?? `sources[${index - places.length}]${config}`;
  });
}

function objectsOf(value: JsonValue, path: string): JsonObject[] {
  if (Array.isArray(value) && value.every((item) => isObject(item))) return value;
  return refuse("invalid_argument", `${path}: expected a list of objects`, { reason: "INVALID_REQUEST" });
}
