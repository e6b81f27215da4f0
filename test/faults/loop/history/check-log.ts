import { type FunctionCall, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunHistory, Violation } from "./history.ts";

/** H1: what is accepted comes to its end. */
export function* checkNotLost({ toldIds, events, runId }: RunHistory): Generator<Violation> {
  const ids = new Set(toldIds);
  if (ids.size > 1) yield { rule: "one run a key", what: `one key led to the runs ${[...ids].join(" and ")}` };
  if (events.length === 0) {
    if (ids.size > 0) yield { rule: "not lost", what: `run ${runId} was accepted and has no log` };
    return;
  }
  const last = events.at(-1)?.event.case;
  if (last !== "ended") yield { rule: "not lost", what: `run ${runId} came to no end: its last event is ${last}` };
}

/** H2: sequences from 0 without a gap; one end, and nothing after it, ever. */
export function* checkOrder({ events, eventCountAtLast }: RunHistory): Generator<Violation> {
  for (const [index, { sequence }] of events.entries()) {
    if (sequence !== index) yield { rule: "contiguous", what: `sequence ${sequence} stands where ${index} belongs` };
  }
  const cases = events.map(({ event }) => event.case);
  if (cases.length > 0 && cases[0] !== "accepted") yield { rule: "contiguous", what: `it begins with ${cases[0]}` };
  if (cases.filter((name) => name === "accepted").length > 1) yield { rule: "contiguous", what: "accepted twice" };
  const ends = cases.filter((name) => name === "ended").length;
  if (ends > 1) yield { rule: "one end", what: `it has ${ends} ends` };
  const end = cases.indexOf("ended");
  if (end >= 0 && end < cases.length - 1) yield { rule: "one end", what: `after its end comes ${cases[end + 1]}` };
  if (eventCountAtLast !== events.length) {
    yield { rule: "one end", what: `it had ${events.length} events at its end, and has ${eventCountAtLast}` };
  }
}

/** H3: epochs grow, and what is written under a claim is written while it is the latest. */
export function* checkEpochs({ events, epochs }: RunHistory): Generator<Violation> {
  let latest = 0;
  for (const [index, { event, sequence }] of events.entries()) {
    const epoch = epochs[index] ?? 0;
    if (event.case === "claimed") {
      if (epoch <= latest) yield { rule: "epochs", what: `${sequence}: epoch ${epoch} is claimed after ${latest}` };
      latest = Math.max(latest, epoch);
    } else if (epoch !== 0 && epoch !== latest) {
      yield { rule: "epochs", what: `${sequence}: ${event.case} of epoch ${epoch} stands under epoch ${latest}` };
    } else if (epoch === 0 && writtenUnderClaim.has(event.case ?? "")) {
      yield { rule: "epochs", what: `${sequence}: ${event.case} is of no epoch` };
    }
  }
}

const writtenUnderClaim: ReadonlySet<string> = new Set([
  "turnCommitted",
  "callStarted",
  "callShown",
  "answerDropped",
  "parked",
  "textCheckpoint",
]);

/** H4: turns follow each other, each call has one result, and a turn comes after all results of the one before. */
export function* checkTranscript({ events }: RunHistory): Generator<Violation> {
  const rule = "transcript";
  const known = new Map<string, FunctionCall>();
  const open = new Set<string>();
  let turn = 0;
  for (const { event, sequence } of events) {
    if (event.case === "turnCommitted") {
      turn += 1;
      if (event.value.turn !== turn) yield { rule, what: `${sequence}: turn ${event.value.turn} stands for ${turn}` };
      if (open.size > 0) yield { rule, what: `${sequence}: a turn follows calls without results: ${[...open]}` };
      for (const { item } of event.value.items) {
        if (item.case !== "functionCall") continue;
        if (known.has(item.value.callId)) yield { rule, what: `${sequence}: call ${item.value.callId} is there twice` };
        known.set(item.value.callId, item.value);
        open.add(item.value.callId);
      }
    }
    if (event.case === "callFinished") {
      const { callId } = event.value;
      if (!open.delete(callId)) {
        yield {
          rule,
          what: `${sequence}: ${known.has(callId) ? "a second" : "a"} result of ${callId} answers nothing`,
        };
      }
    }
    if (event.case === "ended" && event.value.state === RunState.COMPLETED && open.size > 0) {
      yield { rule, what: `it is completed with calls without results: ${[...open]}` };
    }
  }
}

/** H5: what a client was told is stored stands in the log, and what it may ask for is granted. */
export function* checkAcknowledged(history: RunHistory): Generator<Violation> {
  const { events, acknowledged, canceledAtMs, refusals } = history;
  const rule = "acknowledged";
  for (const what of refusals) yield { rule: "granted", what };
  const outputs = new Map(
    events.flatMap(({ event }) =>
      event.case === "callFinished" ? [[event.value.callId, event.value.result?.outputJson]] : [],
    ),
  );
  for (const { callId, outputJson } of acknowledged) {
    const stored = outputs.get(callId);
    if (stored !== outputJson) yield { rule, what: `${callId} was taken as ${outputJson}, and the log has ${stored}` };
  }
  if (canceledAtMs === undefined) return;
  const end = events.findLast(({ event }) => event.case === "ended")?.event;
  if (end?.case === "ended" && end.value.state === RunState.CANCELED) return;
  const is = end?.case === "ended" ? end.value.endReason : "not there";
  yield { rule, what: `the client was told that it is canceled, and its end is ${is}` };
}
