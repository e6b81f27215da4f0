import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createAnswering, LinesEnded } from "./answering.ts";

type Body = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

const refusal = (code: Code, message: string) => new ConnectError(message, code);

/** Somebody who writes when told to, and a run that refuses what it is told to. */
function openTerminal(refusals: Record<string, ConnectError> = {}) {
  const written: string[] = [];
  const asked: string[] = [];
  const submitted: string[] = [];
  let wake: (() => void) | undefined;
  let isOver = false;
  async function* read() {
    for (;;) {
      while (written.length > 0) yield written.shift() ?? "";
      if (isOver) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  const answering = createAnswering({
    lines: read(),
    ask: ({ name, callId }, fault) => void asked.push([name, callId, ...(fault ? [fault] : [])].join(" ")),
    async submit(callId, { outcome }) {
      const refused = refusals[outcome.value];
      if (refused !== undefined) throw refused;
      submitted.push(`${callId} ${outcome.case === "error" ? "failed: " : ""}${outcome.value}`);
    },
  });
  return {
    answering,
    asked,
    submitted,
    write: (...lines: string[]) => {
      written.push(...lines);
      wake?.();
    },
    end: () => {
      isOver = true;
      wake?.();
    },
    happens: (event: Body) =>
      answering.see(create(WatchRunResponseSchema, { update: { case: "event", value: { event } } })),
  };
}

const parked = (...callIds: string[]): Body => ({
  case: "parked",
  value: { calls: callIds.map((callId) => ({ callId, name: "look", argumentsJson: "{}" })) },
});

describe("LOOP-5 the calls that a run waits for", () => {
  test("are answered line by line, in their order, also those of a later turn", async () => {
    const terminal = openTerminal();
    terminal.write('"sun"', "!no such place", "3");
    terminal.happens(parked("a", "b"));
    await until(() => terminal.submitted.length === 2);
    expect(terminal.answering.waiting).toEqual([]);
    terminal.happens(parked("c"));
    await until(() => terminal.submitted.length === 3);
    expect(terminal.submitted).toEqual(['a "sun"', "b failed: no such place", "c 3"]);
    expect(terminal.asked).toEqual(["look a", "look b", "look c"]);
  });

  test("are asked for again when an output does not fit, and left when they wait no more", async () => {
    const terminal = openTerminal({
      sun: refusal(Code.InvalidArgument, "is not JSON"),
      late: refusal(Code.FailedPrecondition, "is not one that the run waits for"),
    });
    terminal.write("sun", '"sun"', "late");
    terminal.happens(parked("a", "b"));
    await until(() => terminal.asked.length === 3 && terminal.answering.waiting.length === 0);
    expect(terminal.asked).toEqual(["look a", "look a is not JSON", "look b"]);
    expect(terminal.submitted).toEqual(['a "sun"']);
  });

  test("may be answered by somebody else: the line is the next one's", async () => {
    const terminal = openTerminal();
    terminal.happens(parked("a", "b"));
    await until(() => terminal.asked.length === 1);
    terminal.happens({ case: "callFinished", value: { callId: "a" } });
    await until(() => terminal.asked.length === 2);
    terminal.write("1");
    await until(() => terminal.submitted.length === 1);
    expect(terminal.submitted).toEqual(["b 1"]);
  });

  test("are left where they are when nobody writes any more, or the suite cannot be told", async () => {
    const terminal = openTerminal();
    terminal.write("1");
    terminal.end();
    terminal.happens(parked("a", "b"));
    await until(() => terminal.answering.left.aborted);
    expect(terminal.answering.left.reason).toBeInstanceOf(LinesEnded);
    expect(terminal.answering.waiting.map(({ callId }) => callId)).toEqual(["b"]);
    const lost = openTerminal({ "1": refusal(Code.Unavailable, "gone") });
    lost.write("1");
    lost.happens(parked("a"));
    await until(() => lost.answering.left.aborted);
    expect(lost.answering.left.reason).toMatchObject({ rawMessage: "gone" });
  });
});
