import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ProviderSchema } from "#gen/toolbus/provider/v1/provider_pb.ts";
import { WatchProvidedToolsResponseSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { ended } from "../../testing/fakes/fake-provider.ts";
import { catalogueOf, tool } from "../../testing/fakes/tools.ts";
import { createOfferJudge } from "../offers/fitness/fitness.ts";
import type { ProviderClient } from "../offers/provider-client.ts";
import { Contexts } from "./contexts.ts";

const COUNT_SCHEMA = '{"type":"object","required":["text"]}';

/** Contexts of as many sessions as are asked for, whose only provider says of none that its offer is that of all. */
function openContexts(startsAfter?: Promise<void>, { answersAfter = Promise.resolve(), provider = "acme" } = {}) {
  const clock = createManualClock();
  const streams = { open: 0 };
  const client: ProviderClient = {
    address: "fake",
    async *watchTools(_, { signal }) {
      streams.open += 1;
      try {
        await answersAfter;
        if (startsAfter !== undefined) {
          const sources = [{ source: "files", starting: true, reason: "it is starting" }];
          yield create(WatchProvidedToolsResponseSchema, { sources });
          await startsAfter;
        }
        const count = { name: "count", executionType: ExecutionType.HOSTED, inputSchemaJson: COUNT_SCHEMA };
        const tools = [
          { tool: { name: "do" } },
          ...(provider === "worker" ? [{ tool: count }] : []),
          { source: "files", tool: { name: "read" } },
        ];
        yield create(WatchProvidedToolsResponseSchema, { tools, sources: [{ source: "files", available: true }] });
        await ended(signal);
      } finally {
        streams.open -= 1;
      }
    },
    listTools: () => Promise.reject(new Error("not asked for")),
    callTool: () => {
      throw new Error("not asked for");
    },
    releaseScope: async () => 0,
  };
  const agent = create(AgentSchema, { name: "helper", tools: { use: ["*"] } });
  const catalogue: Partial<Catalogue> = {
    agent: () => ({ agent, revision: 1 }),
    tools: provider === "acme" ? new Map() : catalogueOf(tool("count", { executionType: ExecutionType.HOSTED })),
    providers: [create(ProviderSchema, { name: provider, address: { case: "service", value: "acme" } })],
    version: 1,
    pins: { settle: async () => {}, approval: () => undefined, isSettled: () => true } as unknown as Catalogue["pins"],
    caughtUp: async () => {},
  };
  const session = (id: string, contextRevision: number) =>
    create(SessionSchema, { id, agent: "helper", contextRevision, state: SessionState.ACTIVE });
  const contexts = new Contexts({
    catalogue: catalogue as Catalogue,
    find: () => client,
    clock,
    startupMs: 5_000,
    idleMs: 60_000,
    judge: createOfferJudge(),
    onUnavailable: () => {},
    onAvailable: () => {},
  });
  const { signal } = new AbortController();
  const contextOf = (id: string, revision = 1) => contexts.ofSession({ session: session(id, revision), since: 0 });
  const list = (id: string, waitMs?: number) => contexts.tools(contextOf(id), signal, waitMs);
  const find = (id: string, name: string, revision?: number) => contexts.find(contextOf(id, revision), name, signal);
  return { clock, contexts, streams, list, find };
}

test("LOOP-16 sessions at rest hold no more streams than there is room for", async () => {
  const { clock, contexts, streams, list } = openContexts();
  const first = await list("first");
  for (let count = 0; count < 2_100; count += 1) await list(`early-${count}`);
  expect(streams.open, "those that were used lately stay").toBe(2_101);
  await clock.advance(7_000);
  for (let count = 0; count < 50; count += 1) await list(`late-${count}`);
  await until(() => streams.open <= 2_101);
  for (let count = 0; count < 200; count += 1) await list("first");
  await until(() => streams.open === 2_000);
  expect([...(await list("first")).byReference.keys()]).toEqual([...first.byReference.keys()]);
  contexts[Symbol.dispose]();
  await until(() => streams.open === 0);
});

test("ORCH-6 a list waits for a source that is starting as long as its reader says, and tells what it does then", async () => {
  const start = Promise.withResolvers<void>();
  const { clock, contexts, list } = openContexts(start.promise);
  const impatient = list("one", 0);
  const patient = list("one", 60_000);
  expect((await impatient).sources).toMatchObject([{ source: "files", starting: true, reason: "it is starting" }]);
  expect([...(await impatient).byReference.keys()]).toEqual([]);
  await until(() => clock.sleeping > 1);
  start.resolve();
  await clock.advance(100);
  expect([...(await patient).byReference.keys()]).toEqual(["do", "@files/read"]);
  contexts[Symbol.dispose]();
});

test("ORCH-6 a call waits for the source that its tool is of, and for no other", async () => {
  const start = Promise.withResolvers<void>();
  const { clock, contexts, find } = openContexts(start.promise);
  expect((await find("one", "@notes/read")).resolution.kind).toBe("unknown");
  const found = Promise.all(["@files/read", "files__read"].map((name) => find("one", name)));
  await until(() => clock.sleeping > 1);
  start.resolve();
  await clock.advance(100);
  for (const { resolution } of await found) expect(resolution.kind).toBe("found");
  contexts[Symbol.dispose]();
});

test("ORCH-6 a call that waits for a source may come again when its agent's context is replaced, or the router stops", async () => {
  const { clock, contexts, find } = openContexts(new Promise(() => {}));
  const refused = (call: Promise<unknown>) =>
    expect(call).rejects.toMatchObject({ code: "unavailable", reason: "CALL_NOT_STARTED" });
  const before = refused(find("one", "@files/read"));
  await until(() => clock.sleeping > 1);
  const after = refused(find("one", "@files/read", 2)); // its file was changed
  await before;
  await until(() => clock.sleeping > 1);
  contexts[Symbol.dispose]();
  await after;
});

test("ORCH-6 what is waited for is in use, however long a source takes to start", async () => {
  const start = Promise.withResolvers<void>();
  const { clock, contexts, streams, list, find } = openContexts(start.promise);
  const listed = list("one", 300_000);
  const found = find("one", "@files/read");
  await until(() => clock.sleeping > 1);
  await clock.advance(100_000);
  contexts.closeIdle();
  start.resolve();
  await clock.advance(100);
  expect([...(await listed).byReference.keys()]).toEqual(["do", "@files/read"]);
  expect((await found).resolution.kind).toBe("found");
  await clock.advance(59_000);
  contexts.closeIdle();
  expect(streams.open, "its time begins when nobody waits any more").toBe(1);
  await clock.advance(2_000);
  contexts.closeIdle();
  await until(() => streams.open === 0);
});

test("KIND-1 a call of a catalogue's tool waits until the provider that runs it has said what arguments it takes", async () => {
  const answer = Promise.withResolvers<void>();
  const { contexts, find } = openContexts(undefined, { answersAfter: answer.promise, provider: "worker" });
  const found = find("one", "count");
  expect(await Promise.race([found, new Promise((resolve) => setTimeout(resolve, 50, "waits"))])).toBe("waits");
  answer.resolve();
  expect((await found).resolution).toMatchObject({ kind: "found", entry: { tool: { inputSchemaJson: COUNT_SCHEMA } } });
  contexts[Symbol.dispose]();
});

test("BUS-6 a call that has waited for the bus is refused for now while nobody has listed its tool", async () => {
  const { contexts, find } = openContexts(undefined, { answersAfter: new Promise(() => {}), provider: "worker" });
  const looked = (name: string) =>
    callPatience.run(() => {
      callPatience.spend(performance.now() - 7_000);
      return find("one", name);
    });
  const refusal = {
    code: "unavailable",
    reason: "BUS_UNAVAILABLE",
    message: expect.stringContaining("not listed yet"),
  };
  await expect(looked("count"), "which its provider has not described").rejects.toMatchObject(refusal);
  await expect(looked("@files/read")).rejects.toMatchObject(refusal);
  contexts[Symbol.dispose]();
});
