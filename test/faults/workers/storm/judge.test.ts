import { expect, it } from "vitest";
import { createRandom } from "../../random.ts";
import { judge, type Outcome, type Seen } from "./judge.ts";
import { type Act, eachAct } from "./mix.ts";

const [mine, other] = ["n000000000001x", "n000000000002x"];
const plain: Act = { tool: "plain", args: {}, ending: { kind: "result" } };
const result: Outcome = { kind: "result", value: mine };
const failure = (reason: string): Outcome => ({ kind: "failure", reason, message: "" });

const seen = (outcome: Outcome, more: Partial<Seen> = {}): Seen => ({
  nonce: mine,
  act: plain,
  outcome,
  shown: [],
  ...more,
});
const rulesOf = (one: Seen, times = 1) => judge([one], new Map([[mine, times]])).map(({ rule }) => rule);

it("a call that has its own result, or an error that may be true, is no violation", () => {
  const faults = { ...plain, ending: { kind: "error", text: "ValueError: NONCE" } } as const;
  expect(rulesOf(seen(result, { shown: [mine, "no nonce"] }))).toEqual([]);
  expect(rulesOf(seen({ kind: "error", text: `ValueError: ${mine}` }, { act: faults }))).toEqual([]);
  expect(rulesOf(seen(failure("WORKER_CRASHED")))).toEqual([]);
  expect(rulesOf(seen(failure("WORKER_BACKED_OFF")), 0)).toEqual([]);
  expect(rulesOf(seen(failure("CANCELED"), { act: { ...plain, leavesAfterMs: 1 } }))).toEqual([]);
});

it("the nonce of another call in a result, a line of the log or a failure is found", () => {
  expect(rulesOf(seen(result, { shown: [mine, `asked for ${other}`] }))).toEqual(["crossed"]);
  expect(rulesOf(seen({ kind: "result", value: other }, { shown: [other] }))).toEqual(["crossed", "untrue"]);
});

it.each([
  ["a result of a call that never began", result, plain, 0],
  ["a call that began, and is said not to have", failure("WORKER_BACKED_OFF"), plain, 1],
  ["a failure that cannot be", failure("INTERNAL"), plain, 1],
  ["an end of its time that it has not", failure("DEADLINE_EXCEEDED"), plain, 1],
  ["a result from a worker that died before", result, { ...plain, ending: { kind: "crash" } } as const, 1],
  ["half a result", result, { ...plain, ending: { kind: "result", times: 2 } } as const, 1],
])("%s is found", (_name, outcome, act, times) => {
  expect(rulesOf(seen(outcome, { act }), times)).toEqual(["untrue"]);
});

it("a call that was begun twice is found", () => {
  expect(rulesOf(seen(result), 2)).toEqual(["twice"]);
});

it("each kind of call names the function that it is of", () => {
  expect(new Set(eachAct(createRandom(1)).map(({ tool }) => tool)).size).toBeGreaterThan(15);
});
