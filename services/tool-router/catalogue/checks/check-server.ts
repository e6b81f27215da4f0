import type { JsonObject } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type McpServer, McpServerSchema, ShareSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { serverFromConfig } from "#runtime/agent-file/server-from-config.ts";
import { isWrittenFlat, pathInFile } from "#runtime/agent-file/server-spelling.ts";
import { namesOf } from "#runtime/agent-file/spelling.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { faultsByContract } from "./contract-faults.ts";

/** TOOL-14. */
const TRANSPORTS = ["stdio", "http", "sse", "ws", "tcp"];
/** As files write it, and as the contract's JSON does. */
const shareWords = new Set([...namesOf(ShareSchema), ...ShareSchema.values.map(({ name }) => name)]);
const SCHEMES = ["http", "https", "ws", "wss", "tcp", "unix"];

export interface ServerCheck {
  /** Whether third parties bring transports, whose names and schemes are not known here. */
  hasOtherTransports: boolean;
}

/** What is wrong with the MCP servers that an agent's sources describe; each fault with its path. */
export function faultsOfServers(agent: Agent, check: ServerCheck): string[] {
  return agent.sources.flatMap(({ provider, config }, index) => {
    if (provider !== "mcp" || config === undefined || Object.keys(config).length === 0) return [];
    return faultsOfConfig(config, check).map((fault) => `sources[${index}].config${fault}`);
  });
}

function faultsOfConfig(config: JsonObject, check: ServerCheck): string[] {
  const { share } = config;
  if (typeof share === "string" && !shareWords.has(share))
    return [`.share: ${JSON.stringify(share)} is none of ${namesOf(ShareSchema).join(", ")}`];
  let read: ReturnType<typeof serverFromConfig>;
  try {
    read = serverFromConfig({ ...config, name: "source" }); // its name is the source's
  } catch (error) {
    return [`: is no MCP server: ${messageFromUnknown(error)}`];
  }
  if ("fault" in read) return [`${read.fault.field && `.${read.fault.field}`}: ${read.fault.message}`];
  const { server } = read;
  const isOfFile = isWrittenFlat(config) || config.name !== undefined;
  const pathOf = isOfFile ? pathInFile : (path: string) => path;
  const faults = faultsByContract(McpServerSchema, server).map((fault) => `.${pathOf(fault)}`);
  return [...faults, ...faultsOfTransport(server, check)];
}

function faultsOfTransport(server: McpServer, { hasOtherTransports }: ServerCheck): string[] {
  const { name: transport, url, command } = partsOfTransport(server);
  if (transport === "stdio" && command === "") return [".transport: stdio needs a command, not a url"];
  if (hasOtherTransports) return [];
  if (transport !== "") {
    const isKnown = TRANSPORTS.includes(transport);
    return isKnown ? [] : [`.transport: ${JSON.stringify(transport)} is none of ${TRANSPORTS.join(", ")}`];
  }
  const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? "";
  const isReached = url === "" || SCHEMES.includes(scheme);
  return isReached ? [] : [`.url: begins with none of ${SCHEMES.map((one) => `${one}:`).join(", ")}`];
}
