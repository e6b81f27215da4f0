import { createHash, createSecretKey } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type InputRequest, InputRequiredSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createMemoryCalls } from "../../../testing/fakes/memory-calls.ts";
import { callRecord } from "../../records/record/call-record.ts";
import { type AskingCall, questionId } from "./question.ts";
import type { QuestionRecordsParts } from "./question-records.ts";
import { createQuestions } from "./questions.ts";

const key = createSecretKey(new Uint8Array(32).fill(3));
const requested = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
const elicitation = { message: "Pay?", requestedSchemaJson: JSON.stringify(requested) };
const required = create(InputRequiredSchema, {
  requests: [{ id: "confirm", request: { case: "elicitation", value: elicitation } }],
});
const request = required.requests[0] as InputRequest;
const accepted = JSON.stringify({ action: "accept", content: { sure: true } });

function open() {
  const waiters = new KeyedListeners();
  const { store, records } = createMemoryCalls(waiters);
  const messages = { show: async () => {} };
  const spaces = { activeSpace: async () => "hall" };
  const parts: QuestionRecordsParts = {
    key,
    store,
    waiters,
    messages,
    spaces,
    audit: () => {},
    clock,
    questionMs: 5_000,
  };
  const call = {
    callId: "hers",
    tool: "@bank/pay",
    scope: { sessionId: "s", runId: "", agent: "a", principal: "alice" },
    runDeadline: undefined,
    answers: { forms: false, urls: false },
    tellAsked: () => {},
    note: () => {},
    sample: async () => "",
  } as unknown as AskingCall;
  const ask = async () => {
    const answered = await createQuestions(parts).answer(call, required, undefined, new AbortController().signal);
    return answered.kind === "answered" ? answered.responses.responses[0]?.resultJson : answered.kind;
  };
  /** A call of mallory's, who has answered it. */
  const takeAs = (callId: string) =>
    records.set(
      callId,
      callRecord({
        ...{ callId, sessionId: "mallorys", agent: "m", principal: "mallory", tool: "mine", state: State.RESOLVED },
        argumentsJson: JSON.stringify({ requestedSchema: requested }),
        result: { outputJson: accepted },
      }),
    );
  return { ask, call, parts, records, store, takeAs };
}

test.each([
  [{ action: "decline", content: {} }, undefined],
  [{ action: "cancel", content: null }, undefined],
  [{ action: "accept", content: { sure: true } }, undefined],
  [{ action: "accept", content: {} }, "result.content: must have required property 'sure'"],
  [{ action: "accept" }, "result: must have required property 'content'"],
])("TOOL-7 only what is accepted has to fit the form: %j", async (answer, fault) => {
  const { ask, records } = open();
  void ask();
  await until(() => records.size > 0);
  const [{ outputSchemaJson } = callRecord({})] = records.values();
  const { signal } = new AbortController();
  const told = await createValidator().faultOfResult(outputSchemaJson, JSON.stringify(answer), "alice", signal);
  expect(told).toEqual(fault && expect.stringContaining(fault));
});

test("SEC-2 nobody computes the id of another's question", async () => {
  const { ask, call, records, store, takeAs } = open();
  const { message, requestedSchemaJson } = elicitation;
  const text = JSON.stringify([call.callId, request.id, message, requestedSchemaJson, ""]);
  const guessed = `ask-${createHash("sha256").update(text).digest("base64url")}`;
  takeAs(guessed);
  const answer = ask();
  const asked = await until(() => [...records.values()].find(({ question }) => question?.callId === "hers"));
  expect(asked.callId).not.toBe(guessed);
  const result = { outputJson: JSON.stringify({ action: "decline" }), isError: false } as never;
  await store.update(asked.callId, (record) => ({ ...record, state: State.RESOLVED, result }));
  store.announce(asked.callId);
  expect(await answer).toBe('{"action":"decline"}');
});

test("SEC-2 a call of another principal under a question's id answers nothing", async () => {
  const { ask, call, takeAs } = open();
  takeAs(questionId(key, call, request));
  expect(await ask()).toBe('{"action":"cancel"}');
});

test("SEC-6 whose principal has its share of the records asks nobody, and its server is told so", async () => {
  const { ask, call, parts, records } = open();
  const notes: string[] = [];
  Object.assign(call, { note: (text: string) => void notes.push(text) });
  parts.quota = {
    requireRoom(principal, bytes = 0) {
      expect(bytes).toBeGreaterThan(elicitation.requestedSchemaJson.length);
      refuse("resource_exhausted", `${principal} has its share`, { reason: "SHARE_EXCEEDED" });
    },
  };
  expect(await ask()).toBe('{"action":"cancel"}');
  expect([records.size, notes]).toEqual([0, [expect.stringContaining("alice has its share")]]);
});

test("LOOP-14 a question that finds no room fails no call that is under way", async () => {
  const { ask, parts } = open();
  parts.store.create = async () => refuse("resource_exhausted", "the store is full", { reason: "STORE_FULL" });
  expect(await ask()).toBe('{"action":"cancel"}');
});
