import { expect, test } from "vitest";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { follow, openWorld, userItem } from "../test-orchestrator.ts";

test("LOOP-1 a run asks the router for its session, its agent and its tools, and again for tools alone", async () => {
  const requests: string[] = [];
  const router = createFakeRouter([{ name: "double", answer: () => 42 }]);
  await using world = await openWorld({ router, onRequest: (method) => requests.push(method) });
  await world.writeScript("helper", { turns: [{ calls: [{ name: "double" }] }, { text: "done" }] });
  await using _ = await world.openOrchestrator("one");
  const { run } = await world.runs.createRun({ agent: "helper", input: [userItem("go")] });
  await follow(world.runs, run!.id);
  const asked = requests.filter((method) => method !== "GetSession"); // an idle session looks into its inbox
  expect(asked.toSorted()).toEqual(["CreateSession", "GetAgent", "ListTools", "ListTools"]); // this router names no list
});
