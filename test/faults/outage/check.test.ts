import { expect, test } from "vitest";
import { checkOutages } from "./check.ts";
import type { ClientCall, Health, Strike } from "./history.ts";

const strike = (more: Partial<Strike> = {}): Strike => ({
  kind: "cut",
  instance: "worker-pool-1",
  fromMs: 10_000,
  toMs: 20_000,
  wellAtMs: 20_000,
  ...more,
});
const faultOf = (text: string) => ({ kind: "fault", text }) as const;
const lost = faultOf('{"error":"outcome_unknown: silent"}');
const call = (more: Partial<ClientCall>): ClientCall => ({
  key: "k",
  tool: "hosted_at_most_once",
  fromMs: 14_000,
  toMs: 14_100,
  told: { kind: "result", key: "k" },
  effects: 1,
  ...more,
});
const told = (status: number, atMs: number) => ({ status, atMs, text: status === 503 ? "no quorum" : "ok" });
const wellTold = [told(503, 16_000), told(200, 21_000)];
const rulesOf = (more: Partial<ClientCall>, struck: Partial<Strike> = {}, health: readonly Health[] = wellTold) =>
  checkOutages({ calls: [call(more)], strikes: [strike(struck)], health, stalls: [] }).map(({ rule }) => rule);

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
  ["E2 a pure call that was lost", { tool: "hosted_pure", fromMs: 11_000, told: lost }, "E2"],
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

test.each<[string, number, string[]]>([
  ["too late where calls take 0.1 s", 100, ["E4"]],
  ["in time where they take 2 s, as on a machine that others use", 2_000, []],
])("E8 a call that large ones delay by 5 s is %s", (_, calmMs, rules) => {
  const calm = Array.from({ length: 50 }, (_, index) =>
    call({ key: `calm${index}`, told: { kind: "result", key: `calm${index}` }, fromMs: 1_000, toMs: 1_000 + calmMs }),
  );
  const delayed = call({ fromMs: 12_000, toMs: 17_000 });
  const found = checkOutages({
    calls: [...calm, delayed],
    strikes: [strike({ kind: "large" })],
    health: [],
    stalls: [],
  });
  expect(found.map(({ rule }) => rule)).toEqual(rules);
});

test("E2 a pure call may be lost on its way to a silent tool-router", () => {
  expect(rulesOf({ tool: "hosted_pure", fromMs: 11_000, told: lost }, { instance: "tool-router-2" })).toEqual([]);
});

const nodes = { kind: "nodes", wellAtMs: 50_000 } as const;
const stalled = faultOf("unavailable: the bus has no quorum");

test.each<[string, Partial<ClientCall>, Partial<Strike>, string[]]>([
  ["E1 no call is lost by an orderly stop", { fromMs: 9_900, effects: 0, told: lost }, { kind: "stop" }, ["E1"]],
  ["E1 nor by a clock", { told: faultOf("unavailable: late"), effects: 0 }, { kind: "clock" }, ["E1"]],
  [
    "E4 a lost sub-agent is told as unknown",
    { tool: "agent", told: faultOf("no") },
    { kind: "silence of all" },
    ["E4"],
  ],
  ["E6 nobody canceled", { fromMs: 11_000, told: faultOf("outcome_unknown: the call was canceled") }, {}, ["E6"]],
  ["E7 a call may be refused without a quorum", { effects: 0, told: stalled }, nodes, []],
  ["E7 in 10 s", { effects: 0, toMs: 24_500, told: stalled }, nodes, ["E4"]],
  ["E7 with the reason", { effects: 0, told: faultOf("unavailable: no") }, nodes, ["E7"]],
  ["E8 large calls delay others little", { toMs: 18_000 }, { kind: "large" }, ["E4"]],
  [
    "E8 and have their results",
    { isLarge: true, tool: "mcp_pure", told: stalled },
    { kind: "large" },
    ["E1", "E2", "E8"],
  ],
  ["E8 in little room", {}, { kind: "large", rssBytes: { "gateway-1": 2 * 1024 ** 3 } }, ["E8"]],
])("%s", (_, more, struck, rules) => {
  expect(rulesOf(more, struck)).toEqual(rules);
});

test("E1 E2 an MCP server of a silent bridge is started elsewhere within 3 s more", () => {
  const ofBridge = { tool: "mcp_pure", told: faultOf("unavailable") } as const;
  expect(rulesOf({ ...ofBridge, fromMs: 14_000 }, { instance: "mcp-bridge-1" })).toEqual([]);
  expect(rulesOf({ ...ofBridge, fromMs: 16_500, toMs: 16_600 }, { instance: "mcp-bridge-1" })).toEqual(["E1", "E2"]);
});

test("E1 a node that stays away costs calls for 15 s, and none of those that are made later", () => {
  const node = { kind: "node", toMs: 50_000, wellAtMs: 50_000 } as const;
  const refused = { effects: 0, told: stalled };
  expect(rulesOf({ ...refused, fromMs: 24_000, toMs: 31_000 }, node)).toEqual([]);
  expect(rulesOf({ ...refused, fromMs: 26_000, toMs: 33_000 }, node)).toEqual(["E1"]);
});

test("E7 health tells that nothing can be stored, and that all is well again", () => {
  expect(rulesOf({}, nodes, [])).toEqual(["E7", "E7"]);
  expect(rulesOf({}, nodes, [told(200, 16_000), told(200, 21_000)])).toEqual(["E7"]);
});

test("a machine that had no time for its processes is no fault of theirs, and excuses nothing that happened twice", () => {
  const history = { strikes: [], health: [], stalls: [{ fromMs: 13_000, toMs: 14_050 }] };
  const rules = (more: Partial<ClientCall>) =>
    checkOutages({ ...history, calls: [call(more)] }).map(({ rule }) => rule);
  expect(rules({ told: lost })).toEqual([]);
  expect(rules({ effects: 2 })).toEqual(["E3"]);
});
