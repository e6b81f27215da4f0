import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { openTestRouter, type TestRouter } from "../test-router.ts";

interface Conditions {
  expectedRevision?: bigint;
  validateOnly?: boolean;
}

interface Stored {
  revision: bigint;
  origin: string;
}

/** One kind of the catalogue by way of one router: `text` is what an editor writes into it. */
interface Edited {
  apply(name: string, text: string, conditions?: Conditions): Promise<Stored | undefined>;
  read(name: string): Promise<(Stored & { text: string | undefined }) | undefined>;
  remove(name: string, conditions?: Conditions): Promise<unknown>;
}

type Clients = TestRouter["clients"];

const kinds: Record<string, (by: Clients) => Edited> = {
  agent: ({ agents }) => ({
    apply: async (name, description, more) =>
      (await agents.applyAgent({ agent: { name, description }, ...more })).agent,
    async read(name) {
      const { agent } = await agents.getAgent({ name });
      return agent && { ...agent, text: agent.agent?.description };
    },
    remove: (name, more) => agents.deleteAgent({ name, ...more }),
  }),
  tool: ({ catalogue }) => ({
    async apply(name, description, more) {
      const tool = { name, description, executionType: ExecutionType.INTERNAL };
      return (await catalogue.applyCatalogTool({ tool, ...more })).tool;
    },
    async read(name) {
      const { tool } = await catalogue.getCatalogTool({ name });
      return tool && { ...tool, text: tool.tool?.description };
    },
    remove: (name, more) => catalogue.deleteCatalogTool({ name, ...more }),
  }),
  provider: ({ providers }) => ({
    apply: async (name, service, more) =>
      (await providers.applyProvider({ provider: { name, address: { case: "service", value: service } }, ...more }))
        .provider,
    async read(name) {
      const { provider } = await providers.getProvider({ name });
      return provider && { ...provider, text: provider.provider?.address.value };
    },
    remove: (name, more) => providers.deleteProvider({ name, ...more }),
  }),
};

describe.each(Object.entries(kinds))("editors of one %s", (kind, editedBy) => {
  let suite: TestRouter;
  let [one, other]: [Edited, Edited] = [editedBy({} as Clients), editedBy({} as Clients)];
  beforeAll(async () => {
    suite = await openTestRouter();
    for (const room of ["router-one", "router-other"]) suite.use(await suite.startRouter(room, room));
    [one, other] = [editedBy(suite.clientsOf("router-one")), editedBy(suite.clientsOf("router-other"))];
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  /** Who wins and how the others are refused, of as many as there are, half of them at each router, all at once. */
  async function race(name: string, expectedRevision: bigint) {
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 ? one : other).apply(name, `s${expectedRevision}-${index}`, { expectedRevision }),
      ),
    );
    const won = tries.flatMap((one, index) => (one.status === "fulfilled" ? [{ stored: one.value, index }] : []));
    const lost = tries.flatMap((one) => (one.status === "rejected" ? [failureFromConnectError(one.reason)] : []));
    return { won, lost };
  }

  test("BUS-1 of editors who know the same revision, at two routers at once, one wins and all others are told", async () => {
    let standing = 0n;
    for (let round = 0; round < 5; round++) {
      const { won, lost } = await race("raced", standing);
      expect(won).toHaveLength(1);
      expect(lost).toHaveLength(19);
      const [{ stored, index }] = won as [(typeof won)[0]];
      const metadata = { name: "raced", current_revision: `${stored?.revision}`, expected_revision: `${standing}` };
      for (const failure of lost)
        expect(failure).toMatchObject({ code: "aborted", reason: "REVISION_MISMATCH", metadata });
      for (const reader of [one, other]) {
        expect(await reader.read("raced")).toMatchObject({
          text: `s${standing}-${index}`,
          revision: stored?.revision,
          origin: "rpc",
        });
      }
      expect(stored?.revision).toBeGreaterThan(standing);
      standing = stored?.revision ?? 0n;
    }
  });

  test("BUS-1 who expects nothing to stand is refused when something does, and the other way round", async () => {
    const first = await one.apply("fresh", "s1", { expectedRevision: 0n });
    const again = await other.apply("fresh", "s2", { expectedRevision: 0n }).catch(failureFromConnectError);
    expect(again).toMatchObject({ code: "aborted", metadata: { current_revision: `${first?.revision}` } });
    const missing = await other.apply("missing", "s1", { expectedRevision: 7n }).catch(failureFromConnectError);
    expect(missing).toMatchObject({ code: "aborted", metadata: { current_revision: "0", expected_revision: "7" } });
    await expect(one.read("missing")).rejects.toThrow(/not_found/);
    expect((await other.apply("fresh", "s3"))?.revision).toBeGreaterThan(first?.revision ?? 0n);
  });

  test("BUS-1 only what stands at the expected revision is removed, and its name is free again", async () => {
    const stored = await one.apply("going", "s1");
    const stale = await one.apply("going", "s2");
    const refused = await other
      .remove("going", { expectedRevision: stored?.revision ?? 0n })
      .catch(failureFromConnectError);
    expect(refused).toMatchObject({ code: "aborted", reason: "REVISION_MISMATCH" });
    await other.remove("going", { expectedRevision: stale?.revision ?? 0n });
    await expect(one.read("going")).rejects.toThrow(/not_found/);
    await expect(other.remove("going", { expectedRevision: 1n })).rejects.toThrow(/not_found/);
    await expect(other.remove("going", { expectedRevision: 0n })).rejects.toThrow(/invalid_argument/);
    expect(await one.apply("going", "s3", { expectedRevision: 0n })).toMatchObject({ origin: "rpc" });
  });

  test("BUS-1 what is only checked is told as it would be stored, and stored nowhere", async () => {
    const tried = await one.apply("tried", "s1", { validateOnly: true, expectedRevision: 0n });
    expect(tried).toMatchObject({ [kind]: { name: "tried" }, revision: 0n, origin: "rpc" });
    await expect(other.read("tried")).rejects.toThrow(/not_found/);
    const stored = await one.apply("tried", "s1");
    expect(await other.apply("tried", "s2", { validateOnly: true })).toMatchObject({ revision: stored?.revision });
    expect(await one.read("tried")).toMatchObject({ text: "s1", revision: stored?.revision });
    const mismatch = await other.apply("tried", "s2", { validateOnly: true, expectedRevision: 0n }).catch(String);
    expect(mismatch).toMatch(/aborted.*it was expected not to exist yet/);
    await expect(one.apply("no name", "s1", { validateOnly: true })).rejects.toThrow(/invalid_argument/);
  });

  test("BUS-1 what is applied again as it stands keeps its revision", async () => {
    const stored = await one.apply("same", "s1");
    expect(await other.apply("same", "s1", { expectedRevision: stored?.revision ?? 0n })).toMatchObject({
      revision: stored?.revision,
    });
  });
});

describe("what does not come by RPC", () => {
  test("BUS-1 tells its origin, and refused files of tools are told with the tools, and with the agents", async () => {
    await using suite = await openTestRouter();
    await mkdir(suite.toolsDirectory);
    await writeFile(join(suite.toolsDirectory, "note.json"), JSON.stringify({ name: "note", kind: "internal" }));
    await writeFile(join(suite.toolsDirectory, "bad.json"), JSON.stringify({ name: "bad", kind: "gateway" }));
    suite.use(await suite.startRouter("a"));
    const { catalogue, agents, providers } = suite.clients;
    const { tools, refusedFiles } = await catalogue.listCatalogTools({});
    expect(tools).toMatchObject([{ tool: { name: "note" }, origin: "note.json" }]);
    expect(tools[0]).toEqual((await catalogue.getCatalogTool({ name: "note" })).tool);
    expect(refusedFiles).toMatchObject([
      { file: "tools/bad.json", faults: ["execution.url: a gateway tool needs a URL"] },
    ]);
    expect((await agents.listAgents({})).refusedFiles).toEqual(refusedFiles);
    const { provider } = await providers.getProvider({ name: "mcp" });
    expect(provider).toMatchObject({
      provider: { address: { case: "service", value: "mcp-bridge" } },
      revision: 0n,
      origin: "suite",
    });
    expect((await providers.listProviders({})).providers).toContainEqual(provider);
  });
});
