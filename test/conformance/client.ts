// The suite as the client that a scenario tries. For the server at the URL of its last argument it makes an agent and a session in a
// space, logs in where the server asks for it, calls each tool once, and answers what it is asked, as a person would.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type ModelTool, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../cli/connection.ts";
import type { Suite } from "../../cli/suite/suite.ts";
import { openConformanceSuite } from "./suite.ts";

/** What a scenario gives beside its URL. */
interface Context {
  client_id?: string;
  client_secret?: string;
  private_key_pem?: string;
  toolCalls?: { name: string; arguments: JsonObject }[];
}

/** Nobody logs in to one server for ever. */
const MOST_LOGINS = 3;
const REDIRECT_URI = "http://127.0.0.1:9/callback";

const url = process.argv.at(-1) ?? "";
const { MCP_CONFORMANCE_SCENARIO: scenario = "", MCP_CONFORMANCE_PROTOCOL_VERSION: revision = "" } = process.env;
const context: Context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const name = `${scenario}-${revision}-${new URL(url).port}`.replace(/\W/g, "-");

await using stack = new AsyncDisposableStack();
const { client } = openConnection(await suiteOf(context));
const source = { name, provider: "mcp", config: { url, ...(await authOf(context)) } };
await client(AgentService).applyAgent({ agent: { name, tools: { use: [`@${name}/*`] }, sources: [source] } });
await client(SessionService).createSession({ sessionId: name, agent: name });
stack.defer(leave);
let logins = 0;
const tools = await toolsAfterLogin();
await client(SpaceService).createSpace({ spaceId: name });
const member = { case: "agent", value: { sessionId: name, agent: name } } as const;
await client(SpaceService).enterSpace({ spaceId: name, member });
for (const tool of tools) for (const given of argumentsOf(tool)) await callTool(tool, given);

/** The one that is running, unless the scenario has secrets: the suite takes them at its start alone. */
async function suiteOf({ client_secret, private_key_pem }: Context): Promise<Pick<Suite, "url" | "apiKey">> {
  const { CONFORMANCE_URL, CONFORMANCE_KEY = "" } = process.env;
  if (CONFORMANCE_URL && client_secret === undefined && private_key_pem === undefined)
    return { url: CONFORMANCE_URL, apiKey: CONFORMANCE_KEY };
  const directory = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const secrets = {
    ...(client_secret !== undefined && { TOOLBUS_SECRET_CLIENT: client_secret }),
    ...(private_key_pem !== undefined && { TOOLBUS_SECRET_KEY: private_key_pem }),
  };
  return stack.use(await openConformanceSuite(directory, secrets));
}

/** The client of the context, and the issuer to which its secret goes: a person would know it, here the server names it. */
async function authOf({
  client_id: clientId,
  client_secret,
  private_key_pem,
}: Context): Promise<{ auth?: JsonObject }> {
  if (clientId === undefined) return {};
  const document = new URL(`/.well-known/oauth-protected-resource${new URL(url).pathname}`, url);
  const read = async () => (await (await fetch(document)).json()) as { authorization_servers: string[] };
  const issuer = (await read().catch(() => undefined))?.authorization_servers[0] ?? new URL(url).origin;
  const named = (secret: string) => `\${secret:${secret}}`;
  const proof = {
    ...(client_secret && { clientSecret: named("CLIENT") }),
    ...(private_key_pem && { privateKey: named("KEY") }),
  };
  const isOwn = scenario.includes("client-credentials");
  return { auth: { clientId, issuer, ...proof, ...(isOwn && { grant: "client_credentials" }) } };
}

/** A scenario ends when nobody is connected to its server. */
async function leave(): Promise<void> {
  await client(SessionService).closeSession({ sessionId: name });
  const isAlone = async () =>
    (await client(McpServerService).listConnections({ sessionId: name })).connections.length === 0;
  await until(isAlone, { what: "the connection to be closed" });
}

async function toolsAfterLogin(): Promise<ModelTool[]> {
  for (;;) {
    const { tools: listed, status } = await until(
      async () => {
        const found = await listTools();
        return found.status && !found.status.starting ? found : undefined;
      },
      { timeoutMs: 20_000, what: "the server" },
    );
    if (status?.available) return listed;
    const { reason = "" } = status ?? {};
    if (!reason.includes("needs login") || reason.includes("has already")) throw new Error(reason);
    await logIn();
    const isOver = async () => (await listTools()).status?.reason !== reason;
    await until(isOver, { timeoutMs: 10_000, what: "the server to take the token" });
  }
}

async function listTools() {
  const scope = { case: "session", value: { sessionId: name } } as const;
  const listed = await client(ToolService).listTools({ scope });
  return {
    tools: listed.tools.filter(({ reference }) => reference.startsWith(`@${name}/`)),
    status: listed.sources.find((one) => one.source === name),
  };
}

/** Those of the scenario, which in one of them are a schema as it was listed, else some that the schema allows. */
function argumentsOf({ tool }: ModelTool): JsonObject[] {
  const given = context.toolCalls?.filter((call) => call.name === tool?.name) ?? [];
  if (given.length > 0) return given.map((call) => call.arguments);
  const shown = tools.find((other) => other.tool?.name === "json_schema_2020_12_tool")?.tool?.inputSchemaJson;
  if (tool?.name === "json_schema_echo" && shown) return [{ schema: JSON.parse(shown) }];
  const { properties = {} } = JSON.parse(tool?.inputSchemaJson || "{}") as { properties?: Record<string, JsonObject> };
  const exampleOf = ({ type }: JsonObject) =>
    ({ number: 1, integer: 1, boolean: true, object: {}, array: [] })[`${type}`];
  return [Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, exampleOf(schema) ?? "x"]))];
}

async function callTool({ modelName }: ModelTool, given: JsonObject): Promise<void> {
  const over = new AbortController();
  const called = callOnce(modelName, JSON.stringify(given)).finally(() => over.abort());
  const answered = answerQuestions(over.signal);
  console.error(modelName, await called);
  await answered;
}

async function callOnce(tool: string, argumentsJson: string): Promise<string> {
  try {
    const events = client(ToolService).callTool({ sessionId: name, name: tool, argumentsJson });
    for await (const { event } of events) if (event.case === "result") return event.value.outputJson;
    return "";
  } catch (error) {
    return failureFromConnectError(error).message;
  }
}

/** Accepts what is asked: a login is done, and a form left as it is. */
async function answerQuestions(over: AbortSignal): Promise<void> {
  const answered = new Set<string>();
  while (!over.aborted) {
    const { calls } = await client(ToolCallService).listToolCalls({ sessionId: name });
    const isOpen = ({ tool, state }: (typeof calls)[number]) =>
      tool === "elicitation/create" && state === ToolCallState.WAITING;
    for (const { callId, argumentsJson } of calls.filter(isOpen)) {
      if (answered.has(callId)) continue;
      answered.add(callId);
      const { mode } = JSON.parse(argumentsJson) as { mode: string };
      if (mode === "url") await logIn();
      const value = JSON.stringify({ action: "accept", ...(mode === "form" && { content: {} }) });
      const outcome = { case: "resultJson", value } as const;
      await client(SpaceService).answerToolCall({ spaceId: name, callId, outcome });
    }
    await delay(50, over).catch(() => {}); // the loop looks at the signal itself
  }
}

async function logIn(): Promise<void> {
  logins += 1;
  if (logins > MOST_LOGINS) throw new Error(`the server wants more than ${MOST_LOGINS} logins`);
  const service = client(McpServerService);
  const { authorizationUrl, state } = await service.beginLogin({ server: name, redirectUri: REDIRECT_URI });
  const response = await fetch(authorizationUrl, { redirect: "manual" });
  const answer = new URL(response.headers.get("location") ?? "about:blank").searchParams;
  const part = (key: string) => answer.get(key) ?? "";
  await service.completeLogin({ state, code: part("code"), issuer: part("iss"), error: part("error") });
}
