/** A bus with two orchestrators, a router with a tool that doubles and one that waits, and scripts that use them. */

import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Run, type RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter, type FakeRouter } from "./fakes/fake-router.ts";
import { follow, openWorld, userItem, type World } from "./test-orchestrator.ts";

export interface ScriptedWorld extends World {
  readonly router: FakeRouter;
  /** Calls of `gate` wait until the test lets them go. */
  gateOf(name: string): PromiseWithResolvers<unknown>;
  start(sessionOrAgent: { sessionId?: string; agent?: string }, text: string, more?: object): Promise<Run>;
  statusOf(run: Run): Promise<RunState>;
  becomes(run: Run, status: RunState): Promise<Run>;
  eventsOf(run: Run, fromSequence?: number): Promise<RunEvent[]>;
}

/** Options of a run with a tool of its client's. */
export const asking = { functionTools: [{ name: "ask" }] };

export async function openScriptedWorld(): Promise<ScriptedWorld> {
  const gates = new Map<string, PromiseWithResolvers<unknown>>();
  const gateOf = (name: string) => {
    const gate = gates.get(name) ?? Promise.withResolvers<unknown>();
    gates.set(name, gate);
    return gate;
  };
  const router = createFakeRouter([
    { name: "double", answer: (args) => ({ value: (args as { value: number }).value * 2 }) },
    { name: "gate", answer: (args) => gateOf((args as { name: string }).name).promise },
  ]);
  const world = await openWorld({ router });
  await world.openOrchestrator("one");
  await world.openOrchestrator("two");
  await writeScripts(world);
  const standing = async ({ id }: Run) => (await world.runs.getRun({ runId: id })).run!;
  const statusOf = async (run: Run) => (await standing(run)).state;
  return {
    ...world,
    router,
    gateOf,
    statusOf,
    start: async (sessionOrAgent, text, more = {}) =>
      (await world.runs.createRun({ ...sessionOrAgent, input: [userItem(text)], ...more })).run!,
    async becomes(run, status) {
      const what = `status ${RunStateSchema.value[status]?.name}`;
      await until(async () => (await statusOf(run)) === status, { what });
      return standing(run);
    },
    async eventsOf({ id }, fromSequence = 0) {
      const updates = await follow(world.runs, id, { fromSequence });
      return updates.flatMap((update) => (update.case === "event" ? [update.value] : []));
    },
  };
}

async function writeScripts(world: World): Promise<void> {
  await world.writeScript("doubler", {
    turns: [
      { text: "I double.", calls: [{ name: "double", arguments: { value: 21 } }] },
      { text: "It is {{result.0.value}}." },
    ],
  });
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.writeScript("waiter", {
    turns: [{ calls: [{ name: "gate", arguments: { name: "{{input}}" } }] }, { text: "{{result.0}} it is" }],
  });
  await world.writeScript("asker", {
    turns: [{ text: "Who?", calls: [{ name: "ask", id: "who" }] }, { text: "Hello {{result.0}}" }],
  });
  await world.writeScript("teller", { turns: [{ text: "once {{input}}", deltaDelayMs: 20 }] });
  await world.writeScript("silent", { turns: [{ text: "never", delayMs: 600_000 }] });
}
