import { afterAll, beforeAll, expect, test } from "vitest";
import { Builtin, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { asPrincipal as as } from "../../../../test/harness/callers.ts";
import { ExternalService, neither } from "../peers/external-service.ts";
import { openReader, type Reader } from "../peers/reader.ts";

const grants = { principals: ["alice"] };
const weigh = { name: "weigh", executionType: ExecutionType.EXTERNAL, visible: false, isAsync: true };

let suite: Reader;
beforeAll(async () => {
  suite = await openReader();
  const { agents } = suite.clients;
  await agents.applyAgent({ agent: { name: "private", tools: { use: ["echo", "weigh"] }, grants } });
  await agents.applyAgent({ agent: { name: "open", tools: { use: ["echo"] } } });
});
afterAll(() => suite[Symbol.asyncDispose]());

const failureOf = (attempt: Promise<unknown>) => attempt.then(() => undefined, failureFromConnectError);

test("SEC-2 an agent is for the principals that it is granted to; others are told who can change that", async () => {
  const { sessions, router } = suite.clients;
  await sessions.createSession({ agent: "private", sessionId: "alices" }, as("alice"));
  await sessions.createSession({ agent: "open", sessionId: "mallorys" }, as("mallory"));
  const scope = { case: "agent", value: "private" } as const;
  const attempts = [
    () => sessions.createSession({ agent: "private" }, as("mallory")),
    () => sessions.switchAgent({ sessionId: "mallorys", agent: "private" }, as("mallory")),
    () => router.listTools({ scope }, as("mallory")),
    () => router.explainTool({ scope, name: "echo" }, as("mallory")),
  ];
  for (const attempt of attempts) {
    const failure = await failureOf(attempt());
    expect(failure).toMatchObject({ code: "permission_denied", reason: "PRINCIPAL_NOT_GRANTED" });
    expect(failure?.message).toBe(
      'agent private is granted to others: ask an operator to name "mallory" in its grants',
    );
  }
  const { agents } = await suite.clients.agents.listAgents({ onlyGranted: true }, as("mallory"));
  expect(agents.map(({ agent }) => agent?.name)).toEqual(["open", "reader"]);
  expect((await router.listTools({ scope }, as("alice"))).tools.length).toBeGreaterThan(0);
  await sessions.createSession({ agent: "private", sessionId: "keyless" }, as("local"));
});

test("SEC-2 calls of an external tool go to whom it is granted, also when another watched before it was there", async () => {
  const { calls, catalogue, call, router } = suite.clients;
  await using mallory = new ExternalService(calls, { tools: ["weigh"] }, neither, as("mallory"));
  await until(() => mallory.notices.length === 1); // there is no such tool yet
  await catalogue.applyCatalogTool({ tool: { ...weigh, grants: { principals: ["scales"] } } });
  await until(async () => (await failureOf(watched("eve")))?.reason === "PRINCIPAL_NOT_GRANTED");
  await call({ sessionId: "alices", name: "weigh", callId: "w1" });
  const answer = { callId: "w1", outcome: { case: "resultJson", value: "1" } } as const;
  expect((await failureOf(calls.submitToolResult(answer, as("mallory"))))?.reason).toBe("CALL_NOT_TAKEN");
  await using scales = new ExternalService(calls, { tools: ["weigh"] }, neither, as("scales"));
  await until(() => scales.callIds.includes("w1"), { timeoutMs: 20_000 });
  expect(mallory.callIds).toEqual([]);
  expect((await calls.submitToolResult(answer, as("scales"))).call?.result?.outputJson).toBe("1");
  const scope = { case: "session", value: { sessionId: "alices" } } as const;
  const { steps } = await router.explainTool({ scope, name: "weigh" }, as("alice"));
  expect(steps.map(({ finding }) => finding).join()).toContain("of those to whom it is granted: scales");

  async function watched(principal: string): Promise<void> {
    for await (const _ of calls.watchToolCalls({ tools: ["weigh"] }, as(principal))) return;
  }
});

test("SEC-2 grants of a tool that nobody watches for are refused", async () => {
  const tool = { name: "said", executionType: ExecutionType.INTERNAL, grants };
  const failure = await failureOf(suite.clients.catalogue.applyCatalogTool({ tool }));
  expect(failure?.message).toContain("grants: only calls of a tool of kind external are watched for");
});

test("SEC-1 lists of tools tell no principal the headers, configurations and paths of the catalogue", async () => {
  const { catalogue, router, agents, sessions } = suite.clients;
  const [headers, config] = [{ authorization: "Bearer hush" }, { key: "hush" }];
  const execution = { url: "https://api.example.org/hush", method: "GET", headers };
  await catalogue.applyCatalogTool({ tool: { name: "fetch", executionType: ExecutionType.GATEWAY, execution } });
  const builtinPolicy = { builtin: Builtin.FS_READ, allowedPaths: ["/hush"] };
  const builtin = { name: "fs_read", executionType: ExecutionType.BUILTIN, builtinPolicy };
  await catalogue.applyCatalogTool({ tool: builtin });
  await catalogue.applyCatalogTool({ tool: { name: "module", executionType: ExecutionType.HOSTED, config } });
  const use = ["fetch", "fs_read", "module", "weigh"];
  await agents.applyAgent({ agent: { name: "armed", tools: { use } } });
  await sessions.createSession({ agent: "armed", sessionId: "eves" }, as("eve"));
  const ofSession = { case: "session", value: { sessionId: "eves" } } as const;
  for (const scope of [undefined, { case: "agent", value: "armed" } as const, ofSession]) {
    const { tools } = await router.listTools({ ...(scope && { scope }), pageSize: 1_000 }, as("eve"));
    const known = tools.map(({ reference }) => reference);
    expect(known).toEqual(expect.arrayContaining(scope ? use : use.filter((name) => name !== "fs_read")));
    const text = JSON.stringify(tools, (_, value) => (typeof value === "bigint" ? String(value) : value));
    expect(text).not.toMatch(/hush|scales/);
  }
});
