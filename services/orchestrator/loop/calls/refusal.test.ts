import { expect, test } from "vitest";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import { openRun } from "../../testing/loop-run.ts";

test("ORCH-2 a name that no tool has goes to the router, which says why; what the loop itself refuses is told", async () => {
  const asked = await openRun({ turns: [{ calls: [{ name: "nothing" }] }, { text: "done" }] });
  await asked.work();
  expect(asked.router.requests.map(({ name }) => name)).toEqual(["nothing"]);
  expect(asked.refused).toEqual([]);
  const calls = [{ name: "fail" }, { name: "nothing" }];
  const narrowed = await openRun({
    turns: [{ calls }, { text: "done" }],
    options: { allowedTools: { names: ["twice"] } },
  });
  await narrowed.work();
  expect(narrowed.router.requests).toEqual([]);
  expect(narrowed.refused).toEqual([
    'fail: tool "fail" is not in the allowed_tools list',
    'nothing: there is no tool "nothing"',
  ]);
});

test.each([
  ["length", "", []],
  ["length", "{}", []],
  ["content-filter", "", []],
  ["length", '{"val', []],
  ["length", '{"value":1}', ["double"]],
  ["tool-calls", "", ["double"]],
] as const)("LOOP-1 a last call of an answer cut off by %s, with arguments '%s', runs %j", async (...given) => {
  const [finishReason, input, executed] = given;
  const cut = { id: "cut", name: "double", input };
  const model = createFakeModel("m", (_, count) => (count === 1 ? { calls: [cut], finishReason } : { text: "done" }));
  const run = await openRun({ turns: [], model });
  await run.work();
  expect(run.router.executed).toEqual(executed);
  expect(run.refused).toEqual(
    executed.length > 0 ? [] : [expect.stringContaining(`: the answer was cut off (${finishReason})`)],
  );
});

test("LOOP-3 a call that its run does not allow is told so alone, also at the end of an answer that was cut off", async () => {
  const cut = { id: "cut", name: "fail", input: '{"a":1}' };
  const model = createFakeModel("m", (_, count) =>
    count === 1 ? { calls: [cut], finishReason: "length" } : { text: "done" },
  );
  const run = await openRun({ turns: [], model, options: { allowedTools: { names: ["double"] } } });
  await run.work();
  expect(run.refused).toEqual(['fail: tool "fail" is not in the allowed_tools list']);
});
