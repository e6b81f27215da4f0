import { create, equals } from "@bufbuild/protobuf";
import { type RunDelta, type RunEvent, RunEventSchema, type TurnCommitted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { textLeftOpen } from "./check-drafts.ts";
import type { PromptMessage, RunHistory, Seen, Violation, Watched } from "./history.ts";

/** H8: each client saw the record from where it asked, in order, to its end, and once. */
export function* checkWatched(history: RunHistory): Generator<Violation> {
  for (const watched of history.watched) {
    for (const { rule, what } of [
      ...checkSeenEvents(history, watched),
      ...checkSeenText(watched, history),
      ...checkSeenOrder(watched),
    ]) {
      yield { rule, what: `${watched.name}: ${what}` };
    }
  }
}

function* checkSeenEvents(
  { events }: RunHistory,
  { fromSequence, seen, hasEnded, error }: Watched,
): Generator<Violation> {
  const rule = "clients see the record";
  const seenEvents = seen.flatMap((entry) => (entry.kind === "event" ? [entry.event] : []));
  for (const [index, event] of seenEvents.entries()) {
    const stored = events[fromSequence + index];
    if (stored === undefined || !equals(RunEventSchema, stored, event)) {
      const [was, is] = [labelOf(event), stored ? labelOf(stored) : "nothing"];
      yield { rule, what: `it saw ${was} where the log has ${is}` };
      return;
    }
  }
  const wanted = Math.max(0, events.length - fromSequence);
  if (hasEnded && seenEvents.length !== wanted) {
    yield { rule, what: `its stream ended after ${seenEvents.length} events of ${wanted}` };
  }
  if (error !== undefined) yield { rule: "streams end", what: `its stream failed: ${error}` };
  const isOver = events.at(-1)?.event.case === "ended";
  if (isOver && !hasEnded) yield { rule: "streams end", what: "its stream did not end with the run" };
  const last = seen.at(-1);
  if (hasEnded && wanted > 0 && (last?.kind !== "event" || last.event.event.case !== "ended")) {
    yield { rule: "streams end", what: "its last word is not the run's end" };
  }
}

/**
 * H9: a client that appends what it is told, and starts over when it is reset, has a prefix of each turn's text when that turn
 * is committed, or when the run ends in the middle of it.
 */
function* checkSeenText({ seen }: Watched, history: RunHistory): Generator<Violation> {
  const rule = "prefix or reset";
  let shown = emptyView();
  let committed = 0;
  for (const entry of seen) {
    if (entry.kind === "event" && entry.event.event.case === "turnCommitted") {
      const turn = entry.event.event.value;
      yield* checkAgainst(turn, shown);
      committed = turn.turn;
      shown = emptyView();
    }
    if (entry.kind === "event" && entry.event.event.case === "ended") {
      yield* checkAgainst({ turn: committed + 1, items: itemsOfText(textLeftOpen(history)) }, shown);
    }
    const place =
      entry.kind === "delta" ? speechOf(entry.delta) : entry.kind === "replaced" ? entry.replaced : undefined;
    if (place !== undefined && place.turn <= committed) {
      yield { rule, what: `turn ${place.turn} goes on after it was committed` };
    }
    shown = viewAfter(shown, entry);
  }
}

/**
 * H9 likewise: deltas of an attempt go on behind the last one that the client has, or behind a reset, whose count says where. What the
 * client lacks when the turn is committed, or the run ends, stands in that event.
 */
function* checkSeenOrder({ seen }: Watched): Generator<Violation> {
  let next: Pick<RunDelta, "turn" | "attempt" | "index"> | undefined;
  for (const entry of seen) {
    if (entry.kind === "event" && entry.event.event.case === "turnCommitted") next = undefined;
    if (entry.kind === "replaced") next = { ...entry.replaced, index: entry.replaced.deltaCount };
    const spoken = entry.kind === "delta" ? entry.delta : undefined;
    if (spoken === undefined || spoken.delta.case === "progress" || spoken.delta.case === "log") continue;
    const { turn, attempt, index } = spoken;
    const wanted = next ?? { turn, attempt, index: 0 };
    if (turn !== wanted.turn || attempt !== wanted.attempt || index !== wanted.index) {
      const [was, is] = [wanted, spoken].map((place) => `${place.turn}/${place.attempt}/${place.index}`);
      yield { rule: "prefix or reset", what: `delta ${is} came where ${was} goes on, without a reset` };
    }
    next = { turn, attempt, index: index + 1 };
  }
}

interface View {
  readonly text: string;
  readonly argumentsByCallId: ReadonlyMap<string, string>;
  /** A reset tells text and no arguments: what follows it in mid-arguments is no prefix. */
  readonly hasWholeArguments: boolean;
}

const emptyView = (): View => ({ text: "", argumentsByCallId: new Map(), hasWholeArguments: true });

function viewAfter(view: View, entry: Seen): View {
  if (entry.kind === "replaced") {
    return { ...emptyView(), text: entry.replaced.text, hasWholeArguments: entry.replaced.deltaCount === 0 };
  }
  if (entry.kind === "event") return view;
  const { delta } = entry.delta;
  if (delta.case === "text") return { ...view, text: view.text + delta.value };
  if (delta.case !== "arguments") return view;
  const { callId, text } = delta.value;
  const before = view.argumentsByCallId.get(callId) ?? "";
  return { ...view, argumentsByCallId: new Map([...view.argumentsByCallId, [callId, before + text]]) };
}

function itemsOfText(text: string): Item[] {
  return [create(ItemSchema, { item: { case: "message", value: { content: textContent(text) } } })];
}

function* checkAgainst({ items, turn }: Pick<TurnCommitted, "items" | "turn">, shown: View): Generator<Violation> {
  const rule = "prefix or reset";
  const text = items.map(({ item }) => (item.case === "message" ? textOfContent(item.value.content) : "")).join("");
  if (!text.startsWith(shown.text)) yield { rule, what: `turn ${turn} showed "${shown.text}" and is "${text}"` };
  if (!shown.hasWholeArguments) return;
  const calls = new Map(
    items.flatMap(({ item }) => (item.case === "functionCall" ? [[item.value.callId, item.value.argumentsJson]] : [])),
  );
  for (const [callId, part] of shown.argumentsByCallId) {
    if (calls.get(callId)?.startsWith(part)) continue;
    yield { rule, what: `turn ${turn} showed arguments ${part} of ${callId}, which are ${calls.get(callId)}` };
  }
}

function speechOf(delta: RunDelta): RunDelta | undefined {
  return delta.delta.case === "text" || delta.delta.case === "arguments" ? delta : undefined;
}

function labelOf({ sequence, event }: RunEvent): string {
  return `${sequence} ${event.case}`;
}

/** H10: each prompt is one that a provider takes: the calls of an answer are answered at once, in their order. */
export function* checkPrompts({ prompts }: RunHistory): Generator<Violation> {
  for (const [index, messages] of prompts.entries()) {
    const fault = faultOfPrompt(messages);
    if (fault !== undefined) yield { rule: "transcript", what: `request ${index + 1} to the model: ${fault}` };
  }
}

function faultOfPrompt(messages: readonly PromptMessage[]): string | undefined {
  let awaited: string[] = [];
  for (const { role, callIds, answersCallId } of messages) {
    if (role === "tool") {
      const next = awaited.shift();
      if (next !== answersCallId) return `an answer to ${answersCallId} stands where ${next ?? "none"} belongs`;
      continue;
    }
    if (awaited.length > 0) return `${role} follows calls without answers: ${awaited}`;
    awaited = [...callIds];
  }
  return awaited.length > 0 ? `it ends with calls without answers: ${awaited}` : undefined;
}
