import { expect, test } from "vitest";
import { checkSilence } from "./check.ts";
import type { ClientCall, Strike } from "./history.ts";

const strike = (instance = "worker-pool-1"): Strike => ({ kind: "cut", instance, fromMs: 10_000, toMs: 20_000 });
const lost = { kind: "fault", text: '{"error":"outcome_unknown: silent"}' } as const;
const call = (more: Partial<ClientCall>): ClientCall => ({
  key: "k",
  tool: "at_most_once",
  fromMs: 14_000,
  toMs: 14_100,
  told: { kind: "result", key: "k" },
  effects: 1,
  ...more,
});
const rulesOf = (more: Partial<ClientCall>, instance?: string) =>
  checkSilence({ calls: [call(more)], strikes: [strike(instance)] }).map(({ rule }) => rule);

test.each<[string, Partial<ClientCall>]>([
  ["a call with its result", {}],
  ["a call that was lost before the silence was noticed", { fromMs: 11_000, told: lost }],
  ["a call that was under way when it began", { fromMs: 9_900, toMs: 13_000, told: lost, effects: 0 }],
])("nothing is wrong with %s", (_, more) => {
  expect(rulesOf(more)).toEqual([]);
});

test.each<[string, Partial<ClientCall>, string]>([
  ["E1 a call that was lost later", { told: lost }, "E1"],
  ["E1 a call that was lost without any strike", { fromMs: 30_000, toMs: 30_100, told: lost }, "E1"],
  ["E2 a pure call that was lost", { tool: "pure", fromMs: 11_000, told: lost }, "E2"],
  ["E3 what happened twice", { effects: 2 }, "E3"],
  ["E3 a result of nothing", { effects: 0 }, "E3"],
  ["E3 the result of another call", { told: { kind: "result", key: "other" } }, "E3"],
  ["E4 what happened and is told as a plain error", { fromMs: 11_000, told: { kind: "fault", text: "no" } }, "E4"],
  ["E4 what is told late", { toMs: 23_000 }, "E4"],
  [
    "E5 a tool that is said to be none",
    { fromMs: 11_000, effects: 0, told: { kind: "fault", text: "There is no tool" } },
    "E5",
  ],
])("%s is found", (_, more, rule) => {
  expect(rulesOf(more)).toEqual([rule]);
});

test("E2 a pure call may be lost on its way to a silent tool-router", () => {
  expect(rulesOf({ tool: "pure", fromMs: 11_000, told: lost }, "tool-router-2")).toEqual([]);
});
