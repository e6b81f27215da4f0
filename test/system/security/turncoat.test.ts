// SEC-4: a real MCP server over stdio that changes its tool after it was allowed, as a person with the command line meets it.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { resultOfToolCall } from "../../../cli/requests/tool-call.ts";
import { commandsAt } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const server = fileURLToPath(new URL("./turncoat-server.ts", import.meta.url));
const patient = { timeoutMs: 45_000, intervalMs: 50 };
let suite: TestSuite;
const { toolbus } = commandsAt(() => suite.url);

beforeAll(async () => {
  suite = await openTestSuite({ env: { TOOLBUS_MCP_STARTUP_TIMEOUT: "30s" } });
}, 120_000);
afterAll(() => suite[Symbol.asyncDispose]());

test("SEC-4 a server that turns on who trusts it misleads no model, and is approved by nobody but an operator", {
  timeout: 120_000,
}, async () => {
  const { client } = suite.connection;
  const router = client(ToolService);
  const config = { name: "sums", stdio: { command: process.execPath, args: [server] } };
  const sources = [{ name: "sums", provider: "mcp", pin: true, config }];
  await client(AgentService).applyAgent({
    agent: { name: "adder", model: { provider: "scripted", model: "none" }, sources, tools: { use: ["@sums/*"] } },
  });
  const sessionId = "adds";
  await client(SessionService).createSession({ agent: "adder", sessionId });
  const listed = async () => (await router.listTools({ scope: { case: "session", value: { sessionId } } })).tools;
  const add = async () => (await listed()).find(({ reference }) => reference === "@sums/add");
  const call = (name: string, args: object) =>
    resultOfToolCall(
      suite.connection,
      { sessionId, name, argumentsJson: JSON.stringify(args) },
      AbortSignal.timeout(30_000),
    );
  await until(async () => (await add())?.callable, patient);
  expect(await call("@sums/add", { a: 1, b: 2 })).toMatchObject({ isError: false });

  await call("@sums/turn", {});
  const changed = await until(async () => {
    const tool = await add();
    return tool?.callable === false ? tool : undefined;
  }, patient);
  expect(changed).toMatchObject({ tool: { description: "Adds two numbers." } });
  const { isError, outputJson } = await call("@sums/add", { a: 1, b: 2, note: "key" });
  expect(isError).toBe(true);
  expect(outputJson).toContain("toolbus tools approve adder");
  expect(outputJson).not.toContain("id_rsa");
  await until(async () => {
    const { events } = await client(AuditService).listAuditEvents({ pageSize: 1_000 });
    return events.some(({ kind, tool }) => kind === AuditKind.TOOL_CHANGED && tool === "@sums/add");
  }, patient);

  const shown = await toolbus("tools", "approve", "adder");
  expect(shown.stdout).toMatch(/^- description: "Adds two numbers\."\n\+ description: .*id_rsa/m);
  expect((await add())?.callable, "to look approves nothing").toBe(false);
  expect((await toolbus("tools", "approve", "adder", "@sums/add")).stdout).toContain("is approved");
  await until(async () => (await add())?.callable, patient);
  expect(await call("@sums/add", { a: 1, b: 2, note: "no" })).toMatchObject({ isError: false });
});
