import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WatchAgentsResponse } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ExplainStage } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { openReader, type Reader } from "../peers/reader.ts";
import { openTestRouter } from "../test-router.ts";

describe("the catalogue on the bus", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test("ORCH-5 explain tells the way and the rule that decides", async () => {
    const sessionId = await suite.openSession();
    const blocked = await suite.clients.router.explainTool({
      scope: { case: "session", value: { sessionId } },
      name: "files__remove_file",
    });
    expect(blocked).toMatchObject({
      reference: "@files/remove_file",
      provider: "mcp",
      callable: false,
      rule: "not in tools.allowed",
    });
    expect(blocked.steps.filter(({ passed }) => !passed).map(({ stage }) => stage)).toEqual([ExplainStage.ALLOWED]);
    const aliased = await suite.clients.router.explainTool({ scope: { case: "agent", value: "reader" }, name: "read" });
    expect(aliased).toMatchObject({ reference: "@files/read_file", callable: true });
    expect(
      await suite.clients.router.explainTool({ scope: { case: "agent", value: "reader" }, name: "nothing" }),
    ).toMatchObject({
      reference: "",
      callable: false,
    });
    await suite.clients.agents.applyAgent({ agent: { name: "idle" } });
    const unused = await suite.clients.router.explainTool({ scope: { case: "agent", value: "idle" }, name: "echo" });
    expect(unused).toMatchObject({ reference: "echo", callable: false, rule: "no entry of tools.use fits" });
  });

  test("ORCH-5 explain says for which agent it does, that of the session or the one that was named", async () => {
    const scope = { case: "session" as const, value: { sessionId: await suite.openSession() } };
    const { explainTool } = suite.clients.router;
    expect(await explainTool({ scope, name: "read" })).toMatchObject({ agent: "reader", callable: true });
    const ofAgent = await explainTool({ scope: { case: "agent", value: "reader" }, name: "read" });
    expect(ofAgent).toMatchObject({ agent: "reader", callable: true });
    expect(await explainTool({ name: "echo" })).toMatchObject({ agent: "", callable: true });
  });

  test("ORCH-3 an agent with faults is refused with all of them; checking alone stores nothing", async () => {
    const aliases = { skip: "echo", lost: "nowhere", one: "two", two: "one" };
    const agent = { name: "faulty", sources: [{ name: "x", provider: "nobody" }], tools: { use: ["@x"], aliases } };
    const refusal = await suite.clients.agents.applyAgent({ agent }).catch(String);
    for (const fault of ["sources[0].provider", "aliases.skip", "aliases.lost", "aliases.one", "tools.use[0]"]) {
      expect(refusal).toContain(fault);
    }
    await suite.clients.agents.applyAgent({ agent: { name: "checked" }, validateOnly: true });
    await expect(suite.clients.agents.getAgent({ name: "checked" })).rejects.toThrow(/not_found/);
  });

  test("ORCH-11 what is applied, refused and removed is on the trail", async () => {
    const { agents, catalogue, audit } = suite.clients;
    await catalogue.applyCatalogTool({ tool: { name: "brief", executionType: ExecutionType.INTERNAL } });
    await catalogue.deleteCatalogTool({ name: "brief" });
    const refusal = await agents.applyAgent({ agent: { name: "bent", tools: { use: ["@x"] } } }).catch(String);
    expect(refusal).toContain("tools.use[0]");
    const filter = { kinds: [AuditKind.CONFIGURED] };
    await until(async () => {
      const messages = (await audit.listAuditEvents({ filter })).events.map(({ message }) => message);
      return [
        "tool brief was applied from rpc by ",
        "tool brief was removed by ",
        'agent "bent" is refused: tools.use[0]',
      ].every((told) => messages.some((message) => message.startsWith(told)));
    });
  });

  test("what one router is told, the other knows; sessions page and close", async () => {
    for (let round = 0; round < 10; round++) {
      const name = `round-${round}`;
      await suite.clients.agents.applyAgent({ agent: { name } });
      await suite.openSession(name);
      expect((await suite.clients.agents.getAgent({ name })).agent?.agent?.name).toBe(name);
    }
    const first = await suite.clients.sessions.listSessions({ pageSize: 5 });
    const second = await suite.clients.sessions.listSessions({ pageSize: 5, pageToken: first.nextPageToken });
    expect(new Set([...first.sessions, ...second.sessions].map(({ id }) => id)).size).toBe(10);
    for (const pageToken of ["s5", `${first.nextPageToken}x`]) {
      const foreign = { code: "invalid_argument", message: expect.stringMatching(/^page_token: /) };
      const { sessions, calls } = suite.clients;
      const asked = [sessions.listSessions({ pageToken }), calls.listToolCalls({ pageToken })];
      const answers = await Promise.all(asked.map((one) => one.catch(failureFromConnectError)));
      for (const answer of answers) expect(answer).toMatchObject(foreign);
    }
    await expect(suite.clients.calls.listToolCalls({ pageToken: first.nextPageToken })).rejects.toThrow(/page_token: /);
    const sessionId = await suite.openSession();
    await suite.clients.sessions.closeSession({ sessionId });
    await expect(suite.clients.call({ sessionId, name: "echo" })).rejects.toThrow(/is closed/);
  });
});

describe("the tool router's files", () => {
  test("are loaded, reloaded and removed; a bad edit keeps the last good content and is told", async () => {
    await using suite = await openTestRouter();
    const [agentFile, toolFile] = [join(suite.agentsDirectory, "writer.json"), join(suite.toolsDirectory, "note.json")];
    await mkdir(suite.agentsDirectory);
    await mkdir(suite.toolsDirectory);
    const tool = { name: "note", executionType: "internal" };
    const agent = { name: "writer", tools: { use: ["note"] }, workers: [{ name: "text", file: "text.py" }] };
    await writeFile(toolFile, JSON.stringify(tool));
    await writeFile(agentFile, JSON.stringify(agent));
    for (const instance of ["a", "b"]) suite.use(await suite.startRouter(instance));
    const written = async () => (await suite.clients.agents.getAgent({ name: "writer" })).agent;
    const source = { name: "text", provider: "worker", config: { file: "text.py" } };
    expect(await written()).toMatchObject({ origin: "writer.json", agent: { sources: [source] } });
    const { revision } = (await written())!;

    const watching = new AbortController();
    const told: WatchAgentsResponse[] = [];
    const faultsTold = () => told.at(-1)?.refusedFiles.flatMap(({ faults }) => faults) ?? [];
    const watch = (async () => {
      for await (const one of suite.clients.agents.watchAgents({}, { signal: watching.signal })) told.push(one);
    })().catch(() => {}); // ended by the test
    await writeFile(agentFile, JSON.stringify({ ...agent, tools: { use: "note" }, colour: "red" }));
    await until(() => faultsTold().length === 2);
    const faults = ["colour: is not a known field", "tools.use: must be array"];
    expect(told.at(-1)?.refusedFiles).toMatchObject([{ file: "agents/writer.json", faults }]);
    expect((await suite.clients.agents.listAgents({})).refusedFiles).toEqual(told.at(-1)?.refusedFiles);
    expect((await suite.clients.catalogue.listCatalogTools({})).refusedFiles).toEqual([]);
    expect((await written())?.revision).toBe(revision);
    await writeFile(agentFile, JSON.stringify({ ...agent, description: "better" }));
    await until(async () => (await written())?.agent?.description === "better");
    const refused = await suite.clients.agents.applyAgent({ agent: { name: "writer" } }).catch(failureFromConnectError);
    expect(refused).toMatchObject({ reason: "ORIGIN_MISMATCH", metadata: { origin: "writer.json" } });
    expect(refused).toMatchObject({ message: expect.stringContaining("comes from the file writer.json") });
    await rm(agentFile);
    await until(async () => (await suite.clients.agents.listAgents({})).agents.length === 0);
    const late = { name: "late", tools: { aliases: { it: "later" } } };
    await writeFile(agentFile, JSON.stringify(late));
    await until(() => faultsTold()[0]?.includes('points to "later", which does not exist'));
    await suite.clients.catalogue.applyCatalogTool({ tool: { name: "later", executionType: ExecutionType.INTERNAL } });
    await until(async () => (await suite.clients.agents.listAgents({})).agents.length === 1);
    watching.abort();
    await watch;
  });
});
