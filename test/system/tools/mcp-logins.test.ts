// Logins at MCP servers as people do them: by the command, by the pages of the gateway, and asked for by a run in a space.

import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { freePort } from "../../../examples/free-port.ts";
import {
  type AuthorizationServer,
  agree,
  openAuthorizationServer,
} from "../../../services/mcp-bridge/auth/testing/authorization-server.ts";
import {
  openProtectedServer,
  type ProtectedServer,
} from "../../../services/mcp-bridge/auth/testing/protected-server.ts";
import { commandsAt, until } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let authorizationServer: AuthorizationServer;
let server: ProtectedServer;
let suite: TestSuite;
let publicUrl: string;

beforeAll(async () => {
  authorizationServer = stack.use(await openAuthorizationServer());
  server = stack.use(await openProtectedServer(authorizationServer));
  const port = await freePort();
  publicUrl = `http://127.0.0.1:${port}`;
  const services = ["gateway", "tool-router", "mcp-bridge", "spaces"];
  suite = stack.use(await openTestSuite({ services, port, env: { TOOLBUS_PUBLIC_URL: publicUrl } }));
  const sources = [{ name: "notes", provider: "mcp", config: { url: server.url } }];
  const { client } = suite.connection;
  const apply = () =>
    client(AgentService).applyAgent({ agent: { name: "reader", sources, tools: { use: ["@notes/*"] } } });
  await until(() => apply().catch(() => undefined), { what: "the router to be there" });
});
afterAll(() => stack.disposeAsync());

const { toolbus, follow } = commandsAt(() => suite.url);
const linkOf = ({ written }: { written: { stdout: string } }) =>
  until(() => /https?:[^\s"]+/.exec(written.stdout)?.[0], { what: "the link" });
const redirectOf = (link: string) => new URL(link).searchParams.get("redirect_uri") ?? "";

async function echo(sessionId: string, text: string): Promise<string | undefined> {
  const request = { sessionId, name: "@notes/echo", argumentsJson: JSON.stringify({ text }) };
  for await (const { event } of suite.connection.client(ToolService).callTool(request))
    if (event.case === "result") return event.value.outputJson;
  return undefined;
}

it("logs in by the command, and the tools of the server are there", async () => {
  await using command = follow("mcp", "login", "notes", "--agent", "reader");
  const link = await linkOf(command);
  const back = await fetch(await agree(link, redirectOf(link)));
  expect(await back.text()).toContain("close this page");
  expect((await command.ended).stdout).toContain("logged in to notes as local");
  await suite.connection.client(SessionService).createSession({ sessionId: "by-command", agent: "reader" });
  expect(await echo("by-command", "mine")).toBe('"mine"');
  expect((await toolbus("mcp")).stdout).toContain("granted");
  await toolbus("mcp", "logout", "notes");
  expect((await toolbus("mcp")).stdout).toContain("needs login");

  await using inJson = follow("mcp", "login", "notes", "--agent", "reader", "--json");
  const nextLink = await linkOf(inJson);
  await fetch(await agree(nextLink, redirectOf(nextLink)));
  const lines = (await inJson.ended).stdout.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ authorizationUrl: nextLink }, { server: "notes" }]);
  expect(JSON.parse((await toolbus("mcp", "logout", "notes", "--json")).stdout)).toEqual({});
});

it("logs in by the pages of the gateway, in the browser that began", async () => {
  const page = `${publicUrl}/oauth/login`;
  expect(await (await fetch(`${page}?server=%3Cnotes`)).text()).toContain("&lt;notes");
  const begin = (key: string) => fetch(page, { method: "POST", body: new URLSearchParams({ server: "notes", key }) });
  expect((await begin("a key of nobody")).status).toBe(401);
  expect((await fetch(page, { method: "POST", headers: { origin: "https://evil.example" } })).status).toBe(400);
  const begun = await begin(suite.apiKey ?? "");
  const [, link = ""] = /href="([^"]*)"/.exec(await begun.text()) ?? [];
  const [cookie = ""] = begun.headers.getSetCookie().map((one) => one.split(";")[0]);
  const back = await agree(link.replaceAll("&amp;", "&"), `${publicUrl}/oauth/callback`);
  const elsewhere = await fetch(back);
  expect([elsewhere.status, await elsewhere.text()]).toEqual([400, expect.stringContaining("no such login")]);
  expect(await (await fetch(back, { headers: { cookie } })).text()).toContain("Logged in to notes");
  expect(await echo("by-command", "again")).toBe('"again"');
  const document = await (await fetch(`${publicUrl}/client-metadata.json`)).json();
  expect(document).toMatchObject({
    client_id: `${publicUrl}/client-metadata.json`,
    redirect_uris: [back.origin + back.pathname, expect.anything(), expect.anything()],
  });
  await toolbus("mcp", "logout", "notes");
});

it("completes two logins that one browser began side by side", async () => {
  await using other = await openProtectedServer(authorizationServer);
  await suite.connection
    .client(McpServerService)
    .applyMcpServer({ server: { name: "tasks", transport: { case: "http", value: { url: other.url } } } });
  const begun = await Promise.all(
    ["notes", "tasks"].map(async (server) => {
      const body = new URLSearchParams({ server, key: suite.apiKey ?? "" });
      const response = await fetch(`${publicUrl}/oauth/login`, { method: "POST", body });
      const [, link = ""] = /href="([^"]*)"/.exec(await response.text()) ?? [];
      return { server, cookies: response.headers.getSetCookie(), link: link.replaceAll("&amp;", "&") };
    }),
  );
  const jar = new Map(
    begun.flatMap(({ cookies }) => cookies.map((line) => line.split(";")[0]!.split("=", 2) as [string, string])),
  );
  const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
  for (const { server, link } of begun) {
    const back = await fetch(await agree(link, `${publicUrl}/oauth/callback`), { headers: { cookie } });
    expect(await back.text()).toContain(`Logged in to ${server}`);
    await toolbus("mcp", "logout", server);
  }
});

it("a call that needs a login asks for it in the space, and goes on when somebody has agreed", async () => {
  const { client } = suite.connection;
  const alone = await echo("by-command", "nobody is there to ask").catch(({ message }: Error) => message);
  expect(alone).toContain("needs login: toolbus mcp login notes");
  await client(SpaceService).createSpace({ spaceId: "hall" });
  const member = { case: "agent", value: { sessionId: "by-command", agent: "reader" } } as const;
  await client(SpaceService).enterSpace({ spaceId: "hall", member });
  const called = echo("by-command", "after");
  const question = await until(async () => {
    const { calls } = await client(ToolCallService).listToolCalls({ sessionId: "by-command" });
    return calls.find(({ tool }) => tool === "elicitation/create");
  });
  expect(question.argumentsJson).toContain(`${publicUrl}/oauth/login?server=notes`);
  await using command = follow("mcp", "login", "notes");
  const link = await linkOf(command);
  await fetch(await agree(link, redirectOf(link)));
  await command.ended;
  const outcome = { case: "resultJson", value: '{"action":"accept"}' } as const;
  await client(SpaceService).answerToolCall({ spaceId: "hall", callId: question.callId, outcome });
  expect(await called).toBe('"after"');
});
