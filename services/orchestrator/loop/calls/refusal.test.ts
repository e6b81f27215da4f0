import { expect, test } from "vitest";
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
