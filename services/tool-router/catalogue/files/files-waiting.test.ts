import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredAgent } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import type { Catalogue } from "../catalogue.ts";
import type { CatalogueEditor, Terms } from "../editor.ts";
import { openCatalogueFiles } from "./files.ts";

const away = new Failure("unavailable", "no server said whether the append was stored", { reason: "OUTCOME_UNKNOWN" });

/** A catalogue whose store answers nothing as often as is told. */
function createAbsentee() {
  const absentee = { fails: 0, failure: away, agents: [] as StoredAgent[], refused: [] as string[] };
  const catalogue = {
    caughtUp: async () => {},
    version: 0,
    agentChanges: createChanges(),
    catalogTools: [],
    get agents() {
      return absentee.agents;
    },
  } as unknown as Catalogue;
  const fail = () => {
    absentee.fails -= 1;
    if (absentee.fails >= 0) throw absentee.failure;
  };
  const editor = {
    async applyAgent(agent: Agent, { origin }: Terms) {
      fail();
      const stored = { agent, origin, revision: 1n, warnings: [] as string[] } as unknown as StoredAgent;
      absentee.agents = [...absentee.agents.filter((other) => other.agent?.name !== agent.name), stored];
      return stored;
    },
    async removeAgent(name: string) {
      fail();
      absentee.agents = absentee.agents.filter(({ agent }) => agent?.name !== name);
    },
  } as unknown as CatalogueEditor;
  return { absentee, catalogue, editor };
}

const agentNamed = (name: string) => JSON.stringify({ name, model: { provider: "scripted", model: "m" } });

async function openFiles(stack: AsyncDisposableStack, fails: number, failure = away) {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-files-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "one.json"), agentNamed("one"));
  const { absentee, catalogue, editor } = createAbsentee();
  Object.assign(absentee, { fails, failure });
  const files = stack.use(
    await openCatalogueFiles(
      { catalogue, editor },
      {
        agentsDirectory: directory,
        toolsDirectory: join(directory, "none"),
        audit: () => {},
        onFaults: (faults) => void absentee.refused.push(...faults),
        onWarnings: () => {},
      },
    ),
  );
  return { directory, absentee, files, names: () => absentee.agents.map(({ agent }) => agent?.name) };
}

test("ORCH-5 a file that found no room in its store is stored once there is some", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using stack = new AsyncDisposableStack();
  const full = new Failure("resource_exhausted", "the store is full", { reason: "STORE_FULL" });
  const { files, names, absentee } = await openFiles(stack, 2, full);
  expect([names(), absentee.refused]).toEqual([[], [expect.stringContaining("one.json: the store is full")]]);
  using load = files.loads.next();
  vi.advanceTimersByTime(10_000);
  await load.happened;
  vi.advanceTimersByTime(10_000);
  await until(() => names().length === 1 && files.refused("agents").length === 0);
});

test("ORCH-5 files are no worse for a store that does not answer: it is waited for, at the start before any session is opened", async () => {
  await using stack = new AsyncDisposableStack();
  const { directory, absentee, files, names } = await openFiles(stack, 3);
  expect([names(), files.refused("agents", "tools"), absentee.refused]).toEqual([["one"], [], []]);
  absentee.fails = 2;
  await writeFile(join(directory, "two.json"), agentNamed("two"));
  await until(() => absentee.agents.length === 2);
  absentee.fails = 2;
  await rm(join(directory, "one.json"));
  await until(() => absentee.agents.length === 1);
  expect([names(), files.refused("agents", "tools"), absentee.refused]).toEqual([["two"], [], []]);
});
