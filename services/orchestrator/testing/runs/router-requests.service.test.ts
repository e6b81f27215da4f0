import { expect, test } from "vitest";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { follow, openWorld, userItem } from "../test-orchestrator.ts";

test("LOOP-1 the router is asked for an agent once, and before a later run of it for a session and its tools", async () => {
  const requests: string[] = [];
  const router = createFakeRouter([{ name: "double", answer: () => 42 }]);
  await using world = await openWorld({ router, onRequest: (method) => requests.push(method) });
  await world.writeScript("helper", { turns: [{ calls: [{ name: "double" }] }, { text: "done" }] });
  await using _ = await world.openOrchestrator("one");
  const finished = async () => {
    requests.length = 0;
    const { run } = await world.runs.createRun({ agent: "helper", input: [userItem("go")] });
    await follow(world.runs, run!.id);
    return requests.filter((method) => method !== "GetSession").toSorted(); // an idle session looks into its inbox
  };
  expect(await finished()).toEqual(["CreateSession", "GetAgent", "ListTools", "ListTools"]); // this router names no list
  expect(await finished()).toEqual(["CreateSession", "ListTools", "ListTools"]);
  router.agent = "helper"; // the context's revision grows
  expect(await finished()).toEqual(["CreateSession", "GetAgent", "ListTools", "ListTools"]);
});
