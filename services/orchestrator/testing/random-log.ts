import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { EventBody } from "../log/journal.ts";
import { callIdsOfTurn, takenCallIds } from "../log/state/call-ids.ts";
import { type FoldedRun, foldEvent, openCalls } from "../log/state/fold.ts";
import type { LogRecord } from "../log/state/log-record.ts";
import { callIdsBefore } from "../loop/prompt/prompt-of-run.ts";

/** What may happen to a run; each step becomes an event where the log as it stands allows it. */
export type Step =
  | { kind: "turn"; parts: Part[] }
  /** The n-th open call gets a result. */
  | { kind: "result"; which: number; outputJson: string }
  | { kind: "compaction"; which: number }
  | { kind: "claim" | "park" | "inbox" };

type Part = { kind: "text"; text: string } | { kind: "thought"; text: string } | Call;
interface Call {
  kind: "call";
  id: string;
  name: string;
  argumentsJson: string;
}

/** More levels than a stack has room for, with whatever reads them on it. */
export const nestedJson = `${"[".repeat(3_000)}${"]".repeat(3_000)}`;

const text = fc.constantFrom("", " \n", "hello", "two\nlines", "\u{1f600}");
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ kind: fc.constant("text" as const), text }),
  fc.record({ kind: fc.constant("thought" as const), text }),
  fc.record({
    kind: fc.constant("call" as const),
    id: fc.constantFrom("", "a", "a", "b", "a_2", "a-2", "call 1", "duplicate_a", "x".repeat(80)),
    name: fc.constantFrom("tool", "", "with blank", "\u00fc", "t".repeat(90), "__proto__"),
    argumentsJson: fc.constantFrom("", "  ", "{}", '{"a":1}', '{"a":', "[1]", "null", '"text"', "7", nestedJson),
  }),
);

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("turn" as const), parts: fc.array(part, { maxLength: 5 }) }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("result" as const),
        which: fc.nat({ max: 7 }),
        outputJson: fc.constantFrom("1", "null", "", "not json", '{"error":"no"}', nestedJson),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("compaction" as const), which: fc.nat({ max: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("claim" as const, "park" as const, "inbox" as const) }) },
  ),
  { maxLength: 25 },
);

/** The run that comes of the steps, with a history before it; cut off after any event it is a log, too. */
export function runFromSteps(runSteps: readonly Step[], input: readonly Item[], history: readonly Item[]) {
  const events: LogRecord[] = [];
  let state: FoldedRun | undefined;
  const add = (event: EventBody) => {
    const instance = event.case === "claimed" ? "i" : "";
    const epoch = (state?.claim?.epoch ?? 0) + (event.case === "claimed" ? 1 : 0);
    const record = { event: create(RunEventSchema, { runId: "r", sequence: events.length, event }), epoch, instance };
    events.push(record);
    state = foldEvent(state, record);
    return state;
  };
  let current = add({ case: "accepted", value: { sessionId: "s", agent: "a", input: [...input] } });
  for (const step of runSteps) {
    const event = eventFromStep(step, current, history);
    if (event !== undefined) current = add(event);
  }
  return { state: current, events };
}

function eventFromStep(step: Step, state: FoldedRun, history: readonly Item[]): EventBody | undefined {
  const open = openCalls(state);
  switch (step.kind) {
    case "turn":
      return open.length > 0 ? undefined : turnFromParts(step.parts, state, history);
    case "result": {
      const call = open[step.which % Math.max(1, open.length)];
      const result = { outputJson: step.outputJson, isError: step.which === 0 };
      return call && { case: "callFinished", value: { callId: call.callId, result } };
    }
    case "compaction": {
      if (open.length > 0) return undefined;
      const beforeSequence = state.turns[step.which]?.sequence ?? state.eventCount;
      return { case: "contextCompacted", value: { beforeSequence, summary: "what was" } };
    }
    case "claim":
      return { case: "claimed", value: {} };
    case "park":
      return open.length > 0 ? { case: "parked", value: { calls: open } } : undefined;
    case "inbox":
      if (state.turns.length > 0 || state.inbox !== undefined) return undefined;
      return { case: "inboxTaken", value: { eventIds: ["e"], items: [userItem("news")] } };
  }
}

function turnFromParts(parts: readonly Part[], state: FoldedRun, history: readonly Item[]): EventBody {
  const inRun = takenCallIds(state.turns);
  const before = callIdsBefore(state, history);
  const modelIds = parts.flatMap((said) => (said.kind === "call" ? [said.id] : []));
  const turn = state.turns.length + 1;
  const ids = callIdsOfTurn(turn, modelIds, { has: (id) => inRun.has(id) || before.has(id) }).values();
  const items = parts.map((said) => create(ItemSchema, { item: itemFromPart(said, () => ids.next().value ?? "") }));
  return { case: "turnCommitted", value: { turn, items } };
}

function itemFromPart(said: Part, nextId: () => string): NonNullable<MessageInitShape<typeof ItemSchema>["item"]> {
  if (said.kind === "text")
    return { case: "message", value: { role: Role.ASSISTANT, content: textContent(said.text) } };
  if (said.kind === "thought") return { case: "reasoning", value: { text: said.text } };
  const { name, argumentsJson } = said;
  return { case: "functionCall", value: { callId: nextId(), name, argumentsJson } };
}

export function userItem(said: string): Item {
  return create(ItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(said) } } });
}
