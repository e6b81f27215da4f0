import { describe, expect, it } from "vitest";
import { checkRouterHistory, hasResult } from "./check.ts";
import type { CallHistory, RouterHistory } from "./history.ts";

const resultJson = '{"number":7,"watcher":"w1","submitter":"s1"}';
const otherJson = '{"number":7,"watcher":"w1","submitter":"s2"}';
const told = { end: "refused", why: "CALL_ALREADY_RESOLVED", atMs: 1_012 } as const;
const errorJson = (error: string) => JSON.stringify({ error });

/** Made at 1,000, executed by w1, answered by s1 before s2. */
const good: CallHistory = {
  callId: "c7",
  tool: { name: "charge", isAsync: false, effect: "at_most_once", timeoutMs: 20_000 },
  number: 7,
  attempts: 1,
  answer: { outputJson: resultJson, isError: false, atMs: 1_015, attemptAtMs: 1_000 },
  failure: "",
  handings: [{ watcher: "w1", stream: 1, deliveryId: "w1.a", atMs: 1_002 }],
  executions: [{ watcher: "w1", deliveryId: "w1.a", atMs: 1_005 }],
  submissions: [
    { submitter: "s1", resultJson, end: "won", why: "", atMs: 1_010 },
    { submitter: "s2", resultJson: otherJson, ...told },
  ],
  record: { state: "resolved", outputJson: resultJson, isError: false, isLate: false },
  inbox: [],
};

const pending = { ...good.answer!, outputJson: '{"status":"pending","pendingToolCallId":"c7"}' };
const timedOut = { ...good.answer!, outputJson: errorJson("Tool timed out after 1500ms"), isError: true };
const late: Partial<CallHistory> = { record: { ...good.record!, isLate: true }, inbox: [resultJson] };
const recordedError = (error: string) => ({ ...good.record!, outputJson: errorJson(error), isError: true });
const second = { watcher: "w2", stream: 1, deliveryId: "w2.a", atMs: 9_000 };
const isPure = { tool: { ...good.tool, effect: "pure" } } as const;
const executedTwice = { handings: [...good.handings, second], executions: [...good.executions, second] };
const unknown = "outcome_unknown: the service that had taken the call was lost during it";

function rulesBrokenBy(change: Partial<CallHistory>, around: Partial<RouterHistory> = {}): string[] {
  const history = { calls: [{ ...good, ...change }], strikes: [], endedStreams: [], ...around };
  return [...new Set(checkRouterHistory(history).map(({ rule }) => rule))];
}

const killed = { strikes: [{ kind: "kill", router: "r1", fromMs: 3_000, toMs: 3_000 }] } as const;

describe("a history in which all is well", () => {
  it.each<[string, Partial<CallHistory>, Partial<RouterHistory>?]>([
    ["a call that was answered in line", {}],
    [
      "an asynchronous one, whose result is in the inbox",
      { tool: { ...good.tool, isAsync: true }, answer: pending, ...late },
    ],
    ["one that timed out, and whose result came late", { answer: timedOut, ...late }],
    ["one whose winner never heard of it", { submissions: [{ ...good.submissions[0]!, end: "unknown" }] }],
    [
      "one that ended with a reason",
      {
        answer: { ...timedOut, outputJson: errorJson(unknown) },
        record: recordedError(unknown),
        submissions: [{ ...good.submissions[1]! }],
      },
    ],
    ["one that was handed on after a router was killed", { handings: [...good.handings, second] }, killed],
    [
      "one that was handed on after its watcher's stream had ended",
      { handings: [...good.handings, second] },
      { endedStreams: [{ watcher: "w1", stream: 1, atMs: 2_000 }] },
    ],
    [
      "one whose answer waited for a router that stood still",
      { answer: { ...good.answer!, atMs: 21_000 } },
      { strikes: [{ kind: "starved", router: "r1", fromMs: 3_000, toMs: 13_000 }] },
    ],
    ["one that is harmless, and was repeated after a loss", { ...isPure, ...executedTwice }, killed],
  ])("%s breaks no rule", (_what, change, around) => {
    expect(rulesBrokenBy(change, around)).toEqual([]);
  });
});

describe("a history that breaks a promise", () => {
  it.each<[string, string, Partial<CallHistory>, Partial<RouterHistory>?]>([
    [
      "answered, or an error that says why",
      "a caller without an answer",
      { answer: undefined, failure: "unavailable" },
    ],
    [
      "answered, or an error that says why",
      "an error without a reason",
      { answer: { ...timedOut, outputJson: errorJson("internal error") } },
    ],
    ["answered, or an error that says why", "a wrong kind of answer", { answer: pending, ...late }],
    ["recorded as it was told", "no record", { record: undefined }],
    ["recorded as it was told", "a record that was left open", { record: { ...good.record!, state: "open" } }],
    ["recorded as it was told", "another result in the record", { record: { ...good.record!, outputJson: otherJson } }],
    ["recorded as it was told", "an error in the record that says no reason", { record: recordedError("oh") }],
    [
      "one submitter won",
      "two who were told that they won",
      { submissions: [good.submissions[0]!, { ...good.submissions[1]!, end: "won" }] },
    ],
    ["one submitter won", "a result of nobody", { submissions: [] }],
    ["one submitter won", "a result of one who was refused", { submissions: [{ ...good.submissions[0]!, ...told }] }],
    [
      "one submitter won",
      "a winner whose result is not recorded",
      { record: recordedError(unknown), answer: { ...timedOut, outputJson: errorJson(unknown) } },
    ],
    ["one submitter won", "a result of another call", { number: 8 }],
    ["answered in time", "a timeout although the answer was there", { answer: timedOut, inbox: [resultJson] }],
    ["answered in time", "a stall", { answer: { ...good.answer!, atMs: 21_000 } }],
    ["in the inbox once", "a late result that nobody was told", { answer: timedOut, ...late, inbox: [] }],
    ["in the inbox once", "a pending call without its event", { answer: pending, inbox: [] }],
    ["in the inbox once", "an event twice", { answer: timedOut, ...late, inbox: [resultJson, resultJson] }],
    ["in the inbox once", "an event with another result", { answer: timedOut, ...late, inbox: [otherJson] }],
    ["in the inbox once", "an event for a result that was given in line", { inbox: [resultJson] }],
    ["handed to one at a time", "two who hold it", { handings: [...good.handings, { ...second, atMs: 1_003 }] }],
    [
      "handed to one at a time",
      "another after a loss that came later",
      { handings: [...good.handings, { ...second, atMs: 1_003 }] },
      killed,
    ],
    ["executed by one", "what must happen once at most, twice, after a loss", executedTwice, killed],
    ["executed by one", "what is harmless, twice, without a loss", { ...isPure, ...executedTwice }],
    ["executed by one", "a result of one who had not taken it", { executions: [] }],
  ])("%s: %s", (rule, _what, change, around) => {
    expect(rulesBrokenBy(change, around)).toContain(rule);
  });
});

it("a result counts when it reached who called, in line or by the inbox", () => {
  expect(hasResult(good)).toBe(true);
  expect(hasResult({ ...good, answer: timedOut, ...late })).toBe(true);
  expect(hasResult({ ...good, answer: timedOut })).toBe(false);
  expect(hasResult({ ...good, record: recordedError(unknown) })).toBe(false);
});
