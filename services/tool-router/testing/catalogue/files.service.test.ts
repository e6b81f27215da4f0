import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestRouter, type TestRouter } from "../test-router.ts";

describe("files of agents and tools", () => {
  let suite: TestRouter;
  beforeAll(async () => {
    suite = await openTestRouter();
    await mkdir(suite.agentsDirectory);
    await mkdir(suite.toolsDirectory);
    suite.use(await suite.startRouter("a"));
    suite.use(await suite.startMcp());
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  const write = (directory: string, file: string, content: object) =>
    writeFile(join(directory, file), JSON.stringify(content));
  const refusedFiles = async () => (await suite.clients.agents.listAgents({})).refusedFiles;
  const agentOf = async (name: string) => (await suite.clients.agents.getAgent({ name }).catch(() => undefined))?.agent;

  test("ORCH-5 a file that others would write in another language is refused, and no file that is none of ours", async () => {
    await write(suite.agentsDirectory, "writer.yaml", { name: "writer" });
    await write(suite.agentsDirectory, "notes.md", {});
    const fault = "is not read: agents and tools are written as JSON, in files NAME.json";
    await until(async () => (await refusedFiles()).length > 0);
    expect(await refusedFiles()).toMatchObject([{ file: "agents/writer.yaml", faults: [fault] }]);
    await rm(join(suite.agentsDirectory, "writer.yaml"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test("TOOL-14 ORCH-11 a file whose server has an unknown transport is refused when it is loaded, which is audited once", async () => {
    const server = { name: "m", url: "http://127.0.0.1:1/mcp", transport: "htpp" };
    const sources = [{ name: "s", provider: "nobody" }];
    const file = { name: "typo", mcp: { servers: [server] }, sources };
    await write(suite.agentsDirectory, "typo.json", file);
    const [refused] = await until(async () => {
      const files = await refusedFiles();
      return files.length > 0 && files;
    });
    expect(refused!.faults.toSorted()).toEqual([
      'mcp.servers[0].transport: "htpp" is none of stdio, http, sse, ws, tcp',
      'sources[0].provider: there is no provider "nobody"',
      expect.stringMatching(/^tools\.use: is empty.* \(a warning\)$/),
    ]);
    await write(suite.agentsDirectory, "other.json", { name: "other" }); // all files are loaded again
    await until(() => agentOf("other"));
    await rm(join(suite.agentsDirectory, "typo.json"));
    await until(async () => (await refusedFiles()).length === 0);
    const told = await until(async () => {
      const { events } = await suite.clients.audit.listAuditEvents({ filter: { kinds: [AuditKind.CONFIGURED] } });
      const ofFile = events.filter(({ message }) => message.startsWith("the file agents/typo.json"));
      return ofFile.some(({ rule }) => rule === "file accepted") && ofFile.reverse();
    });
    expect([...new Set(told.map(({ rule }) => rule))]).toEqual(["file refused", "file accepted"]);
    expect(told[0]?.message).toContain('mcp.servers[0].transport: "htpp" is none of');
    expect(told.filter(({ rule }) => rule === "file refused").length).toBeLessThanOrEqual(2); // once a router
    await rm(join(suite.agentsDirectory, "other.json"));
  });

  test("a tool that a file of another name defines is told to be refused, also for the file's form", async () => {
    await write(suite.toolsDirectory, "10-tools.json", { name: "lookup", executionType: "internal", visibel: true });
    await write(suite.agentsDirectory, "seeker.json", { name: "seeker", tools: { use: ["lookup"] } });
    await until(async () => (await agentOf("seeker"))?.warnings.some((one) => one.includes("tools/10-tools.json")));
    await rm(join(suite.agentsDirectory, "seeker.json"));
    await rm(join(suite.toolsDirectory, "10-tools.json"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test("files and RPC are held to one contract", async () => {
    const agent = { name: "wordy", description: "x".repeat(70_000) };
    await expect(suite.clients.agents.applyAgent({ agent })).rejects.toThrow(/description/);
    await write(suite.agentsDirectory, "wordy.json", agent);
    await until(async () => (await refusedFiles())[0]?.faults[0]?.startsWith("description: "));
    await rm(join(suite.agentsDirectory, "wordy.json"));
    await until(async () => (await refusedFiles()).length === 0);

    const tool = { name: "talker", description: "x".repeat(70_000), executionType: "internal" };
    await write(suite.toolsDirectory, "talker.json", tool);
    await until(async () => (await refusedFiles())[0]?.faults[0]?.startsWith("description: "));
    await rm(join(suite.toolsDirectory, "talker.json"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test.each(["tools", "agents"])(
    "two files of %s with one name are both refused, and what stood stays",
    async (kind) => {
      const directory = kind === "tools" ? suite.toolsDirectory : suite.agentsDirectory;
      const content = (text: string) => ({
        name: `twice-${kind}`,
        description: text,
        ...(kind === "tools" && { executionType: "internal" }),
      });
      const standing = async () => {
        if (kind === "agents") return (await agentOf("twice-agents"))?.agent?.description;
        const found = await suite.clients.catalogue.getCatalogTool({ name: "twice-tools" }).catch(() => undefined);
        return found?.tool?.tool?.description;
      };
      await write(directory, "b.json", content("first"));
      await until(async () => (await standing()) === "first");
      await write(directory, "a.json", content("second"));
      await until(async () => (await refusedFiles()).length === 2);
      expect(await refusedFiles()).toMatchObject([
        { file: `${kind}/a.json`, faults: [`name: "twice-${kind}" is defined in b.json, too`] },
        { file: `${kind}/b.json`, faults: [`name: "twice-${kind}" is defined in a.json, too`] },
      ]);
      expect(await standing()).toBe("first");
      await rm(join(directory, "b.json"));
      await until(async () => (await standing()) === "second");
      await rm(join(directory, "a.json"));
      await until(async () => (await standing()) === undefined);
    },
  );

  test("ORCH-5 an agent whose tools do not resolve is loaded and says so; what its sources lack is told when it is built", async () => {
    await write(suite.agentsDirectory, "empty.json", { name: "empty", tools: { use: ["nothing"] } });
    const stored = await until(() => agentOf("empty"));
    expect(stored.warnings).toContain("tools.use: no tool resolves");
    suite.mcp.offer([{ source: "files", tool: { name: "read" } }], [{ source: "files", available: true }]);
    const sources = [{ name: "files", provider: "mcp" }];
    const agent = { name: "reader", sources, tools: { use: ["@files/read", "@files/write"] } };
    await suite.clients.agents.applyAgent({ agent });
    const { session } = await suite.clients.sessions.createSession({ agent: "empty" });
    const sessionId = session!.id;
    await suite.clients.sessions.switchAgent({ sessionId, agent: "reader" });
    const filter = { sessionId, kinds: [AuditKind.BUILT] };
    const built = await until(async () => (await suite.clients.audit.listAuditEvents({ filter })).events[0]);
    expect(built.message).toBe('1 tools; tools.use[1]: "@files/write" names no tool');
  });

  test("an agent that is loaded afresh loses no call in flight, and the next one is decided by its new configuration", async () => {
    const tools = { use: ["@files/read"], aliases: { it: "@files/read" } };
    const file = (description: string, more = {}) => ({
      name: "hot",
      description,
      sources: [{ name: "files", provider: "mcp" }],
      tools: { ...tools, ...more },
    });
    await write(suite.agentsDirectory, "hot.json", file("one"));
    await until(() => agentOf("hot"));
    await suite.clients.sessions.createSession({ agent: "hot", sessionId: "hot" });
    const release = Promise.withResolvers<void>();
    suite.mcp.answer = async function* () {
      await release.promise;
      yield { event: { case: "result", value: { outputJson: '"whole"' } } };
    };
    const calling = suite.clients.call({ sessionId: "hot", name: "it", callId: "hot-1" });
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "hot-1"));
    await write(suite.agentsDirectory, "hot.json", file("two", { allowed: ["echo"] }));
    await until(async () => (await agentOf("hot"))?.agent?.description === "two");
    expect((await suite.clients.call({ sessionId: "hot", name: "it" })).isError).toBe(true);
    release.resolve();
    expect((await calling).output).toBe("whole");
  });
});
