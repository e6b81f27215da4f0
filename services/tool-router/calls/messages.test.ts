import { expect, test } from "vitest";
import { Failure, type FailureCode } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { success } from "./answers/answer.ts";
import { openMessages } from "./messages.ts";

const call = {
  callId: "c1",
  spaceId: "room",
  sessionId: "s1",
  agent: "tester",
  runId: "r1",
  tool: "ask",
  argumentsJson: "{}",
  outputSchemaJson: "",
};

/** Messages to a spaces service that answers as it is told, then well. */
function open(...codes: FailureCode[]) {
  const clock = createManualClock();
  const faults: string[] = [];
  let asked = 0;
  const record = async () => {
    const code = codes[asked++];
    if (code !== undefined) throw new Failure(code, "no", { reason: "SERVICE_UNAVAILABLE" });
  };
  const spaces = { activeSpace: async () => "room", recordToolMessage: record, deliverEvent: record };
  const messages = openMessages(spaces, clock, (fault) => faults.push(fault));
  return { clock, faults, messages, asked: () => asked };
}

test.each<FailureCode>(["invalid_argument", "not_found", "failed_precondition", "permission_denied"])(
  "TOOL-10 a result that spaces refuse for good (%s) is not offered again, and told once",
  async (code) => {
    const { clock, faults, messages, asked } = open(code, code, code);
    messages.showResult(call, success("done"));
    await until(() => faults.length > 0);
    await clock.advance(60_000);
    expect(asked()).toBe(1);
    expect(faults).toEqual(["the message of call c1 is refused: no"]);
  },
);

test("TOOL-10 a result is shown as soon as spaces are back, and their absence is told once", async () => {
  const { clock, faults, messages, asked } = open("unavailable", "deadline_exceeded", "unavailable");
  messages.showResult(call, success("done"));
  await until(() => faults.length > 0 && clock.sleeping === 1);
  await clock.advance(60_000);
  expect(asked()).toBe(4);
  expect(faults).toEqual(["the message of call c1 waits: no"]);
});

test("closing tries a last time and waits for nobody who is not there", async () => {
  const { clock, messages, asked } = open(...Array<FailureCode>(10).fill("unavailable"));
  messages.showResult(call, success("late"));
  await until(() => clock.sleeping === 1);
  await messages[Symbol.asyncDispose]();
  expect(asked()).toBe(2);
});

test("TOOL-9 a result that an inbox has no room for is not given up", async () => {
  const { messages, faults } = open("resource_exhausted");
  await expect(messages.deliver(call, success("late"))).rejects.toThrow("no");
  await messages.deliver(call, success("late"));
  expect(faults).toEqual([]);
});
