import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type SpaceMessage,
  SpaceMessageSchema,
  ToolMessageState as Status,
  type ToolMessage,
  ToolMessageSchema,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { isFinal, messageOfEvent } from "../space/space-state.ts";
import { decideToolMessage, idOfToolMessage, toolOf } from "./tool-message.ts";

const draft = () => create(SpaceMessageSchema, { id: idOfToolMessage("c"), spaceId: "s" });
const tool = (status: Status, more: { argumentsJson?: string; argumentsIncomplete?: boolean } = {}) =>
  create(ToolMessageSchema, { callId: "c", tool: "ask", state: status, ...more });

/** Shows one update after another, as a log would. */
function show(updates: readonly ToolMessage[]): { shown: SpaceMessage | undefined; events: string[] } {
  let shown: SpaceMessage | undefined;
  const events: string[] = [];
  for (const update of updates) {
    const decision = decideToolMessage(shown, update, draft);
    if ("keep" in decision) continue;
    shown = messageOfEvent(decision.append);
    events.push(decision.append.event.case ?? "");
  }
  return { shown, events };
}

describe("a tool call that is shown", () => {
  test("TOOL-10 shows its arguments as they come, then what it waits for, then its result", () => {
    const { shown, events } = show([
      tool(Status.RUNNING, { argumentsJson: "{" }),
      tool(Status.RUNNING, { argumentsJson: "{}" }),
      tool(Status.REQUIRES_ACTION),
      tool(Status.COMPLETE),
    ]);
    expect(events).toEqual(["toolStarted", "toolStreaming", "toolRequiresAction", "toolDone"]);
    expect(shown && toolOf(shown)).toMatchObject({ state: Status.COMPLETE, argumentsJson: "{}" });
  });

  test("TOOL-10 shows an error where it failed", () => {
    expect(show([tool(Status.RUNNING), tool(Status.ERROR)]).events).toEqual(["toolStarted", "toolError"]);
  });

  const [written, whole] = [
    { argumentsJson: '{"a', argumentsIncomplete: true },
    { argumentsJson: '{"a":1}', argumentsIncomplete: false },
  ];

  test("TOOL-10 a call that is made goes on with the message of its draft, which tells nothing any more", () => {
    const { shown, events } = show([
      tool(Status.RUNNING, written),
      tool(Status.RUNNING, whole),
      tool(Status.RUNNING, { ...written, argumentsJson: "{" }),
      tool(Status.ERROR, written),
      tool(Status.COMPLETE),
    ]);
    expect(events).toEqual(["toolStarted", "toolStreaming", "toolDone"]);
    expect(shown && toolOf(shown)).toMatchObject({ state: Status.COMPLETE, ...whole });
  });

  test("TOOL-10 a draft that has ended stays so, also one that is told of for the first time", () => {
    for (const before of [[tool(Status.RUNNING, written)], []]) {
      const { shown } = show([...before, tool(Status.ERROR, written), tool(Status.RUNNING, written)]);
      expect(shown && toolOf(shown).state).toBe(Status.ERROR);
    }
  });

  test("a call without a status is refused", () => {
    expect(() => decideToolMessage(undefined, tool(Status.UNSPECIFIED), draft)).toThrow(/state/);
  });

  const status = fc.constantFrom(Status.RUNNING, Status.REQUIRES_ACTION, Status.COMPLETE, Status.ERROR);

  test("TOOL-10 never goes back, and keeps the first of its results, in whatever order updates come", () => {
    fc.assert(
      fc.property(fc.array(status, { minLength: 1, maxLength: 8 }), (statuses) => {
        const { shown, events } = show(statuses.map((each) => tool(each)));
        const last = shown && toolOf(shown).state;
        expect(last).toBe(statuses.find(isFinal) ?? Math.max(...(statuses as number[])));
        expect(new Set(events).size).toBe(events.length);
      }),
    );
  });
});
