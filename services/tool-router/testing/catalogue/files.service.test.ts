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

  test("all faults of a file are told at once and in one list: of form, of the contract, and of what it names", async () => {
    await write(suite.agentsDirectory, "faulty.json", {
      name: "faulty",
      colour: "red",
      description: "x".repeat(70_000),
      mcp: { servers: [{ name: "m", command: "m" }] },
      workers: [{ name: "m" }],
      sources: [{ name: "x y", provider: "nobody" }],
      tools: { use: ["@x"], aliases: { lost: "nowhere" } },
    });
    const [refused] = await until(async () => {
      const files = await refusedFiles();
      return files.length > 0 && files;
    });
    expect(refused).toMatchObject({
      file: "agents/faulty.json",
      faults: [
        "colour: is not a known field",
        expect.stringMatching(/^description: must NOT have more than 65536 characters/),
        expect.stringMatching(/^sources\[0\]\.name: must match pattern/),
        'workers[0].name: "m" is there twice',
        'sources[0].provider: there is no provider "nobody"',
        'tools.aliases.lost: points to "nowhere", which does not exist',
        'tools.use[0]: "@x" is neither a name nor @source/tool',
        "tools.use: no tool resolves (a warning)",
      ],
    });
    await rm(join(suite.agentsDirectory, "faulty.json"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test("ORCH-5 a file that others would write in another language is refused, and no file that is none of ours", async () => {
    await write(suite.agentsDirectory, "writer.yaml", { name: "writer" });
    await write(suite.agentsDirectory, "notes.md", {});
    const fault = "is not read: agents and tools are written as JSON, in files NAME.json";
    await until(async () => (await refusedFiles()).length > 0);
    expect(await refusedFiles()).toMatchObject([{ file: "agents/writer.yaml", faults: [fault] }]);
    await rm(join(suite.agentsDirectory, "writer.yaml"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test("a value that no agent can have hides no other fault, neither of form nor of meaning", async () => {
    await write(suite.agentsDirectory, "wild.json", {
      name: "wild",
      limits: { maxTurns: -4, maxDepth: "deep" },
      mcp: { servers: [{ name: "m", command: "m", args: ["a", 1], healthCheck: { intervalMs: -1 } }] },
      tools: { use: ["@m/*", 7], aliases: { skip: "@m/x", lost: "nowhere", good: "@m/x" } },
    });
    const [refused] = await until(async () => {
      const files = await refusedFiles();
      return files.length > 0 && files;
    });
    expect(refused!.faults.toSorted()).toEqual([
      "limits.maxDepth: must be integer",
      "limits.maxTurns: must be >= 1",
      "mcp.servers[0].args[1]: must be string",
      "mcp.servers[0].healthCheck.intervalMs: must be >= 1",
      'tools.aliases.lost: points to "nowhere", which does not exist',
      "tools.aliases.skip: skip is the name of a built-in",
      "tools.use[1]: must be string",
    ]);
    await rm(join(suite.agentsDirectory, "wild.json"));
    await until(async () => (await refusedFiles()).length === 0);
  });

  test("TOOL-14 ORCH-11 a file whose server has an unknown transport is refused when it is loaded, which is audited once", async () => {
    const server = { name: "m", url: "http://127.0.0.1:1/mcp", transport: "htpp" };
    const sources = [{ name: "s", provider: "nobody" }];
    const file = { name: "typo", mcp: { servers: [server, { name: "n" }] }, sources };
    await write(suite.agentsDirectory, "typo.json", file);
    const [refused] = await until(async () => {
      const files = await refusedFiles();
      return files.length > 0 && files;
    });
    expect(refused!.faults.toSorted()).toEqual([
      'mcp.servers[0].transport: "htpp" is none of stdio, http, sse, ws, tcp',
      expect.stringMatching(/^mcp\.servers\[1\]: /),
      expect.stringMatching(/^mcp\.servers\[1\]: /),
      expect.stringMatching(/^mcp\.servers\[1\]: /),
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

  test("all faults of a tool's file are told at once, too", async () => {
    await write(suite.toolsDirectory, "wild.json", {
      name: "a name",
      executionType: "gateway",
      visibel: true,
      timeout: -1,
      inputSchema: { type: "objekt" },
    });
    const [refused] = await until(async () => {
      const files = await refusedFiles();
      return files.length > 0 && files;
    });
    expect(refused!.faults.toSorted()).toEqual([
      "execution.url: a gateway tool needs a URL",
      expect.stringMatching(/^inputSchema: is no JSON Schema: /),
      expect.stringMatching(/^name: must be 1 to 64 letters/),
      "timeout: must be >= 1",
      "visibel: is not a known field",
    ]);
    await rm(join(suite.toolsDirectory, "wild.json"));
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
