import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { follow, openWorld, userItem, type World } from "../test-orchestrator.ts";

let world: World;
const ids: Record<string, string> = {};
let betweenMs = 0;

beforeAll(async () => {
  world = await openWorld({ router: createFakeRouter([]) });
  await world.openOrchestrator("one");
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.writeScript("asker", { turns: [{ calls: [{ name: "ask", id: "who" }] }, { text: "Hello" }] });
  await start("early", { agent: "echo" });
  betweenMs = Date.now();
  await start("asking", { agent: "asker", options: { functionTools: [{ name: "ask" }] } });
  await start("late", { agent: "echo" });
});
afterAll(() => world[Symbol.asyncDispose]());

async function start(name: string, request: object): Promise<void> {
  const { run } = await world.runs.createRun({ input: [userItem("hi")], ...request });
  ids[name] = run!.id;
  const isParked = async () => (await world.runs.getRun({ runId: run!.id })).run?.state === RunState.REQUIRES_ACTION;
  if (name === "asking") await until(isParked, { what: "the run to wait" });
  else await follow(world.runs, run!.id);
}

const between = () => timestampFromMs(betweenMs);
const afterAllOfThem = () => timestampFromMs(Date.now() + 3_600_000);
const lists: readonly [string, () => object, readonly string[]][] = [
  ["all", () => ({}), ["late", "asking", "early"]],
  ["those with an agent", () => ({ agent: "echo" }), ["late", "early"]],
  ["those whose model called a tool", () => ({ tool: "ask" }), ["asking"]],
  ["those whose model called another tool", () => ({ tool: "as" }), []],
  ["those from a time on", () => ({ startTime: between() }), ["late", "asking"]],
  ["those before a time", () => ({ endTime: between() }), ["early"]],
  ["those of a time to come", () => ({ startTime: afterAllOfThem() }), []],
  ["those that pass all filters", () => ({ agent: "echo", startTime: between() }), ["late"]],
  ["those in a state", () => ({ states: [RunState.COMPLETED], agent: "asker" }), []],
];

test.each(lists)("ORCH-12 a list of runs has %s", async (_, request, names) => {
  const { runs } = await world.runs.listRuns(request());
  expect(runs.map(({ id }) => id)).toEqual(names.map((name) => ids[name]));
});

test("ORCH-12 a list of runs says what each was asked", async () => {
  const { runs } = await world.runs.listRuns({});
  expect(new Set(runs.map(({ inputText }) => inputText))).toEqual(new Set(["hi"]));
});

test("ORCH-12 list-1 pages go on under the same filters only", async () => {
  const first = await world.runs.listRuns({ agent: "echo", pageSize: 1 });
  expect(first.runs.map(({ id }) => id)).toEqual([ids.late]);
  const pageToken = first.nextPageToken;
  const second = await world.runs.listRuns({ agent: "echo", pageSize: 1, pageToken });
  expect(second.runs.map(({ id }) => id)).toEqual([ids.early]);
  for (const other of [{ agent: "asker" }, { agent: "echo", tool: "ask" }, { agent: "echo", startTime: between() }])
    await expect(world.runs.listRuns({ ...other, pageToken })).rejects.toThrow(/page_token/);
});

test("ORCH-12 list-3 a page of large answers is one that every client takes", async () => {
  await world.writeScript("long", { turns: [{ text: "{{input}}" }] });
  const large = "x".repeat(900_000);
  const names = ["first", "second", "third", "fourth"];
  for (const name of names) await start(name, { agent: "long", input: [userItem(large)] });
  const page = (pageToken: string) => world.runs.listRuns({ agent: "long", pageToken });
  const pages = (await allPages(page)).map(({ runs }) => runs);
  for (const { outputText } of pages.flat()) expect(outputText === large).toBe(true);
  const idsOf = (...wanted: string[]) => wanted.map((name) => ids[name]);
  expect(pages.map((runs) => runs.map(({ id }) => id))).toEqual([idsOf("fourth", "third", "second"), idsOf("first")]);
});
