import type { JsonObject } from "@bufbuild/protobuf";
import { AuthGrant, type McpServer, McpServerSchema, Share } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { waysOfDurations } from "#runtime/agent-file/agent-spelling.ts";
import { serverFromConfig } from "#runtime/agent-file/server-from-config.ts";
import { isWrittenFlat, pathInFile } from "#runtime/agent-file/server-spelling.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { faultsOfServerHeaders, type ServerFault } from "#runtime/config/run-servers.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { violationsFrom } from "#runtime/failure/error-detail.ts";
import { messageFromUnknown, refuse, refuseField } from "#runtime/failure/failure.ts";
import { contractValidator } from "#runtime/schema/contract/contract-validator.ts";
import { isObject } from "#runtime/schema/json-object.ts";

const reason = "INVALID_REQUEST";

const MOST_PARSED = 1_000;
const parsedByText = new BoundedMap<string, McpServer>(MOST_PARSED);

/**
 * The server that a source's configuration describes: the JSON form of `McpServer`, whose name is the source's. Each call
 * brings its source along, so what was parsed is kept: the same text is the same object, which nobody changes.
 */
export function parseServer(sourceName: string, config: JsonObject): McpServer {
  const text = JSON.stringify([sourceName, config]);
  const parsed = parsedByText.get(text);
  if (parsed) return parsed;
  refuseTwoWays(config);
  const server = readServer(sourceName, config);
  server.name = sourceName;
  parsedByText.set(text, validServer(server, isWrittenFlat(config) ? pathInFile : undefined));
  return server;
}

function refuseTwoWays({ healthCheck }: JsonObject): void {
  if (!isObject(healthCheck)) return;
  const [one, other] = waysOfDurations.find((ways) => ways.every((way) => healthCheck[way] !== undefined)) ?? [];
  if (one !== undefined) refuseField("healthCheck", `${one} and ${other} are two ways to write one duration`);
}

function readServer(sourceName: string, config: JsonObject): McpServer {
  let read: ReturnType<typeof serverFromConfig>;
  try {
    read = serverFromConfig(config);
  } catch (error) {
    const text = `the MCP server ${sourceName} cannot be read: ${messageFromUnknown(error)}`;
    return refuse("invalid_argument", text, { reason });
  }
  if ("server" in read) return read.server;
  const { field, message } = read.fault;
  const fieldViolations = [{ field: field || "url", message }];
  return refuse("invalid_argument", `the MCP server ${sourceName} is refused: ${message}`, { reason, fieldViolations });
}

/** The same server if it can be used; else throws `invalid_argument`, which names what is wrong. */
export function validServer(server: McpServer, pathOf = (path: string) => path): McpServer {
  const { kind, violations } = contractValidator.validate(McpServerSchema, server);
  if (kind !== "valid") {
    const faults = violations?.map((fault) => `${pathOf(fault.field.map(fieldName).join("."))}: ${fault.message}`) ?? [
      "invalid",
    ];
    refuse("invalid_argument", `the MCP server ${server.name} is refused: ${faults.join("; ")}`, {
      reason,
      fieldViolations: violationsFrom({ violations: violations ?? [] }),
    });
  }
  const fieldViolations = [...faultsOfServerHeaders(partsOfTransport(server).headers), ...faultsOfAuth(server)];
  const [fault] = fieldViolations;
  if (fault !== undefined)
    refuse("invalid_argument", `the MCP server ${server.name} ${fault.message}`, { reason, fieldViolations });
  return server;
}

/** What a client shows to prove itself is for one authorization server alone; else the MCP server could choose who gets it. */
function faultsOfAuth({ auth, share }: McpServer): ServerFault[] {
  if (auth === undefined) return [];
  const { clientId, clientSecret, privateKey, issuer, grant } = auth;
  const fault = (field: string, message: string) => [
    { field: `auth.${field}`, message: `needs auth.${field}: ${message}` },
  ];
  const hasProof = clientSecret !== "" || privateKey !== "";
  const isExchanged = grant === AuthGrant.TOKEN_EXCHANGE;
  if (clientId === "" && (hasProof || isExchanged || grant === AuthGrant.CLIENT_CREDENTIALS))
    return fault("clientId", "it is the client that the secret or the grant is of");
  if (isExchanged && (share === Share.AGENT || share === Share.GLOBAL))
    return [{ field: "share", message: "is shared: a token is exchanged for its person alone (auth.grant)" }];
  if (isExchanged && !URL.canParse(issuer))
    return fault("issuer", "the URL of the authorization server that alone is shown the token of a person");
  if (hasProof && !URL.canParse(issuer))
    return fault("issuer", "the URL of the authorization server that the client is known to");
  if (grant === AuthGrant.CLIENT_CREDENTIALS && !hasProof)
    return fault("clientSecret", "without it or auth.privateKey, the client cannot prove itself");
  return [];
}

function fieldName(part: object): string {
  return "name" in part ? String(part.name) : "";
}
