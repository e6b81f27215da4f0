import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { HealthStateSchema, LoginStateSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import {
  BeginLoginResponseSchema,
  CompleteLoginResponseSchema,
  DeleteLoginResponseSchema,
  ListConnectionsResponseSchema,
  McpServerService,
} from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { codeOfValue, printLine, printMessage, printNote, printTable } from "../../printing/print.ts";
import { portNumber } from "../../requests/numbers.ts";

const PATH = "/callback";

interface Options {
  agent?: string;
  port: number;
}

export function addMcpCommand(program: Command): void {
  const mcp = program
    .command("mcp")
    .description("Be an agent's MCP server on stdin and stdout; show MCP servers, log in to them, or out")
    .argument("[agent]", "the agent whose tools an MCP client gets; without one, the servers are listed")
    .option("-s, --session <id>", "only the servers of this session")
    .action(async (agent: string | undefined, _, command: Command) => {
      if (agent === undefined) return listServers({}, command);
      await (await import("./stdio.ts")).serveStdio(agent, command);
    });
  mcp.command("servers").description("List the connections to MCP servers, with what each needs").action(listServers);
  mcp
    .command("login")
    .description("Log in to a server that asks for a token, in a browser on this machine")
    .argument("<server>")
    .option("-a, --agent <name>", "the agent whose server it is, unless it was applied for all")
    .option("-p, --port <number>", "where the browser comes back to on this machine; 0 takes a free one", portNumber, 0)
    .action(logIn);
  mcp
    .command("logout")
    .description("Forget the login at a server, and have its tokens revoked")
    .argument("<server>")
    .action(logOut);
}

async function listServers(_: unknown, command: Command): Promise<void> {
  const { session = "" } = command.optsWithGlobals<{ session?: string }>();
  const global = globalOptionsOf(command);
  const client = openConnection(global).client(McpServerService);
  const pages = await allPages((pageToken) => client.listConnections({ sessionId: session, pageToken }));
  const response = { ...pages[0], connections: pages.flatMap(({ connections }) => connections), nextPageToken: "" };
  if (global.json) return printMessage(ListConnectionsResponseSchema, response);
  const rows = response.connections.map(({ server, sessionId, agent, health, login, toolCount, reason }) => [
    ...[server, sessionId || "-", agent || "-", codeOfValue(HealthStateSchema, health)],
    ...[login === 0 ? "-" : codeOfValue(LoginStateSchema, login), `${toolCount}`, reason],
  ]);
  printTable(["SERVER", "SESSION", "AGENT", "HEALTH", "LOGIN", "TOOLS", "REASON"], rows);
}

async function logIn(server: string, { agent, port }: Options, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  await using session = await sessionOf(connection, agent);
  void session; // its server has asked for a token by now
  const client = connection.client(McpServerService);
  await using back = await openWayBack(port);
  const begun = await client.beginLogin({ server, redirectUri: back.redirectUri });
  printNote(`Agree at ${begun.issuer}, in a browser on this machine:`);
  if (global.json) printMessage(BeginLoginResponseSchema, begun);
  else printLine(begun.authorizationUrl);
  const untilMs = begun.expireTime ? timestampMs(begun.expireTime) : Date.now();
  const answer = await back.answer(begun.state, untilMs - Date.now());
  const done = await client.completeLogin({ state: begun.state, ...answer });
  if (global.json) return printMessage(CompleteLoginResponseSchema, done);
  const scopes = done.scopes.length === 0 ? "" : `, with the scopes ${done.scopes.join(" ")}`;
  printLine(`logged in to ${done.server} as ${done.principal || "all who share it"}${scopes}`);
}

async function logOut(server: string, _: unknown, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(McpServerService).deleteLogin({ server });
  if (global.json) return printMessage(DeleteLoginResponseSchema, response);
  printLine(`logged out of ${server}`);
}

/** A session in which the agent's servers are asked; it goes with the command. */
async function sessionOf(connection: Connection, agent: string | undefined): Promise<AsyncDisposable> {
  if (agent === undefined) return { [Symbol.asyncDispose]: async () => {} };
  const sessions = connection.client(SessionService);
  const { session } = await sessions.createSession({ agent });
  const sessionId = session?.id ?? "";
  const tools = connection.client(ToolService);
  await allPages((pageToken) =>
    tools.listTools({
      scope: { case: "session", value: { sessionId } },
      pageToken,
      sourceWait: { seconds: 10n, nanos: 0 },
    }),
  );
  return { [Symbol.asyncDispose]: async () => void (await sessions.closeSession({ sessionId })) };
}

interface Answer {
  code: string;
  issuer: string;
  error: string;
}

/** Waits on this machine for the browser that comes back; what comes with another state is not of this login. */
async function openWayBack(port: number) {
  const answered = Promise.withResolvers<Answer>();
  let expected: string | undefined;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const given = (name: string) => url.searchParams.get(name) ?? "";
    if (url.pathname !== PATH || expected === undefined || given("state") !== expected) return page(response, 404);
    page(response, 200);
    return answered.resolve({ code: given("code"), issuer: given("iss"), error: given("error") });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
  return {
    redirectUri,
    answer(state: string, timeoutMs: number): Promise<Answer> {
      expected = state;
      const late = setTimeout(() => answered.reject(new Error("nobody has agreed in time")), timeoutMs);
      return answered.promise.finally(() => clearTimeout(late));
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeIdleConnections();
    },
  };
}

function page(response: ServerResponse, status: 200 | 404): void {
  const text = status === 200 ? "You can close this page, and go back to toolbus." : "There is no such login here.";
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" }).end(`${text}\n`);
}
