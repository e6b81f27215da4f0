/**
 * The state of a run is the fold of its log: pure, and the same on every replica.
 *
 *   accepted ──▶ queued ──claimed──▶ working ──parked──▶ parked ──claimed──▶ working
 *                   └───────────────────┴──────ended──────┴──────▶ ended
 *
 * fold-1  Sequences are contiguous from 0, and the first event is `accepted`.
 * fold-2  Nothing follows `ended`.
 * fold-3  Epochs grow; an event with an epoch is written under the claim of that epoch.
 * fold-4  A call has one result: the first one in the log.
 * fold-5  Only what the log has counts as spent, so that a crash forgets no part of a budget.
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type {
  CallFinished,
  CallShown,
  CancelRequested,
  ContextCompacted,
  InboxTaken,
  RunAccepted,
  RunEnded,
  RunEvent,
  RunParked,
  TurnCommitted,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { FunctionCall, Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import {
  type Draft,
  draftAfter,
  type LogWeight,
  lostDraft,
  type Place,
  weightOfCheckpoint,
  weightOfItems,
} from "./draft/draft.ts";
import type { LogRecord } from "./log-record.ts";
import { idsOf, noResults, type Results, withOneMore } from "./results.ts";
import { plus, type Spent, unspent } from "./spent.ts";

export interface Turn {
  /** Where its commit stands in the log. */
  readonly sequence: number;
  readonly committed: TurnCommitted;
  readonly calls: readonly FunctionCall[];
  readonly resultsByCallId: Results;
  /** By which submissions the client answered them, where those have ids. */
  readonly submissionsByCallId: Results<string>;
  /** Whether one of its results ends the run. */
  readonly endsRun: boolean;
}

type Phase =
  | { readonly kind: "queued" }
  | { readonly kind: "working" }
  | { readonly kind: "parked" /** When its time is over. */; readonly untilMs: number }
  | { readonly kind: "ended"; readonly ended: RunEnded; readonly atMs: number };

interface Claim {
  readonly epoch: number;
  readonly instance: string;
}

export interface FoldedRun {
  readonly runId: string;
  /** How many events the log has, which is the sequence of the next one. */
  readonly eventCount: number;
  readonly accepted: RunAccepted;
  readonly acceptedAtMs: number;
  readonly phase: Phase;
  readonly claim: Claim | undefined;
  /** Claims since the last turn was committed: attempts of a later claim are numbered after those of an earlier one. */
  readonly claimsInTurn: number;
  /** Answers since then that were whole and of no use: the next one was, or will be, asked for on purpose. */
  readonly droppedInTurn: number;
  readonly turns: readonly Turn[];
  /** Calls of the last turn that the run has waited for. */
  readonly parkedCallIds: ReadonlySet<string>;
  /** How many calls the model made, and how many were made on the behalf of those that have their results. */
  readonly callCount: number;
  /** As the last turn was committed: its calls are judged by this in every process, whatever came of other calls since. */
  readonly atTurn: { readonly callsBefore: number; readonly spent: Spent };
  /** What joined from the inbox, before the first turn. */
  readonly inbox: InboxTaken | undefined;
  /** The summary that stands for the older part of the conversation, once there is one. */
  readonly compaction: ContextCompacted | undefined;
  readonly spent: Spent;
  /** What the log has of the text of a turn that is not committed. */
  readonly draft: Draft | undefined;
  /** That of a process that is gone, while what its attempt used is not counted (draft-5); and the last attempt that is. */
  readonly lost: Draft | undefined;
  readonly counted: Place | undefined;
  readonly weight: LogWeight;
  /** Calls that were shown while the model wrote them, whether or not they were made. */
  readonly shown: readonly CallShown[];
  readonly cancel: CancelRequested | undefined;
}

/** The state after all events; undefined for a log without any. Throws `data_loss` for a log that breaks fold-1 to fold-3. */
export function foldLog(records: Iterable<LogRecord>): FoldedRun | undefined {
  let state: FoldedRun | undefined;
  for (const record of records) state = foldEvent(state, record);
  return state;
}

export function foldEvent(state: FoldedRun | undefined, record: LogRecord): FoldedRun {
  const { event } = record;
  const expected = state?.eventCount ?? 0;
  if (event.sequence !== expected) broken(event, `sequence ${event.sequence} stands where ${expected} belongs`); // fold-1
  if (state === undefined) return stateFromAccepted(event);
  if (state.phase.kind === "ended") broken(event, "an event stands after the end"); // fold-2
  return { ...state, ...changeFromRecord(state, record), eventCount: expected + 1 };
}

function stateFromAccepted(event: RunEvent): FoldedRun {
  if (event.event.case !== "accepted") broken(event, `the log begins with ${event.event.case}`); // fold-1
  return {
    runId: event.runId,
    eventCount: 1,
    accepted: event.event.value,
    acceptedAtMs: timeMsOf(event),
    phase: { kind: "queued" },
    claim: undefined,
    claimsInTurn: 0,
    droppedInTurn: 0,
    turns: [],
    parkedCallIds: new Set(),
    callCount: 0,
    atTurn: { callsBefore: 0, spent: unspent },
    inbox: undefined,
    compaction: undefined,
    spent: unspent,
    draft: undefined,
    lost: undefined,
    counted: undefined,
    weight: { items: weightOfItems(event.event.value.input), checkpoints: 0 },
    shown: [],
    cancel: undefined,
  };
}

function changeFromRecord(state: FoldedRun, { event: envelope, ...claim }: LogRecord): Partial<FoldedRun> {
  const { event } = envelope;
  switch (event.case) {
    case "claimed": {
      const { epoch } = claim;
      if (epoch <= (state.claim?.epoch ?? 0)) broken(envelope, `epoch ${epoch} is claimed a second time`); // fold-3
      const lost = lostDraft(state.draft, state.counted) ?? state.lost;
      return { claim, claimsInTurn: state.claimsInTurn + 1, phase: { kind: "working" }, draft: undefined, lost };
    }
    case "turnCommitted": {
      const turn = turnFromCommitted(event.value, envelope.sequence);
      const spent = plus(state.spent, event.value.usage); // fold-5
      return {
        turns: [...state.turns, turn],
        parkedCallIds: new Set(),
        callCount: state.callCount + turn.calls.length,
        atTurn: { callsBefore: state.callCount, spent },
        spent,
        claimsInTurn: 1,
        droppedInTurn: 0,
        draft: undefined,
        lost: undefined,
        weight: heavier(state, { items: weightOfItems(event.value.items) }),
      };
    }
    case "callFinished": {
      const { result } = event.value;
      const turns = withResult(state.turns, event.value);
      if (turns === state.turns) return {};
      const weight = heavier(state, { items: result?.outputJson.length ?? 0 });
      const callCount = state.callCount + event.value.callCount;
      return { turns, weight, callCount, spent: plus(state.spent, event.value.usage) }; // fold-5
    }
    case "answerDropped": {
      const { usage, brokeOff, turn, attempt } = event.value;
      const droppedInTurn = state.droppedInTurn + (brokeOff ? 0 : 1);
      return { spent: plus(state.spent, usage), droppedInTurn, counted: { turn, attempt }, lost: undefined }; // fold-5
    }
    case "inboxTaken":
      return { inbox: event.value };
    case "contextCompacted":
      return { compaction: event.value, spent: plus(state.spent, event.value.usage) }; // fold-5
    case "textCheckpoint": {
      const weight = heavier(state, { checkpoints: weightOfCheckpoint(event.value) });
      return { draft: draftAfter(state.draft, event.value), weight };
    }
    case "callShown":
      return { shown: [...state.shown, event.value] };
    case "parked":
      return { phase: { kind: "parked", untilMs: deadlineMsOf(event.value) }, parkedCallIds: idsOf(event.value.calls) };
    case "cancelRequested":
      return { cancel: state.cancel ?? event.value };
    case "ended":
      return { phase: { kind: "ended", ended: event.value, atMs: timeMsOf(envelope) } };
    default:
      return {}; // events that change no state, also those of a later release
  }
}

function turnFromCommitted(committed: TurnCommitted, sequence: number): Turn {
  const calls = callsFrom(committed.items);
  return { sequence, committed, calls, resultsByCallId: noResults, submissionsByCallId: noResults, endsRun: false };
}

export function callsFrom(items: readonly Item[]): FunctionCall[] {
  return items.flatMap(({ item }) => (item.case === "functionCall" ? [item.value] : []));
}

function heavier({ weight }: FoldedRun, { items = 0, checkpoints = 0 }: Partial<LogWeight>): LogWeight {
  return { items: weight.items + items, checkpoints: weight.checkpoints + checkpoints };
}

function withResult(turns: readonly Turn[], finished: CallFinished): readonly Turn[] {
  const { callId, result, submissionId } = finished;
  const index = turns.findLastIndex(({ calls }) => idsOf(calls).has(callId));
  const turn = turns[index];
  if (turn === undefined || result === undefined || turn.resultsByCallId.has(callId)) return turns; // fold-4
  const resultsByCallId = withOneMore(turn.resultsByCallId, callId, result);
  const { submissionsByCallId: known } = turn;
  const submissionsByCallId = submissionId === "" ? known : withOneMore(known, callId, submissionId);
  const endsRun = turn.endsRun || finished.endsRun;
  return turns.with(index, { ...turn, resultsByCallId, submissionsByCallId, endsRun });
}

/** The calls of the last turn that have no result. */
export function openCalls(state: FoldedRun): FunctionCall[] {
  const turn = state.turns.at(-1);
  return turn === undefined ? [] : turn.calls.filter((call) => !turn.resultsByCallId.has(call.callId));
}

/** How many they are. */
export function openCallCount({ turns }: FoldedRun): number {
  const turn = turns.at(-1);
  return turn === undefined ? 0 : idsOf(turn.calls).size - turn.resultsByCallId.size;
}

export function isOpenCall({ turns }: FoldedRun, callId: string): boolean {
  const turn = turns.at(-1);
  return turn !== undefined && idsOf(turn.calls).has(callId) && !turn.resultsByCallId.has(callId);
}

/** Whether there is something that a process can do for the run at that time. */
export function isRunnable(state: FoldedRun, nowMs: number): boolean {
  const { phase, cancel } = state;
  if (phase.kind !== "parked") return phase.kind !== "ended";
  return cancel !== undefined || nowMs >= phase.untilMs || openCallCount(state) === 0;
}

function deadlineMsOf({ deadline }: RunParked): number {
  return deadline === undefined ? Number.POSITIVE_INFINITY : timestampMs(deadline);
}

function timeMsOf(event: Pick<RunEvent, "createTime">): number {
  return event.createTime === undefined ? 0 : timestampMs(event.createTime);
}

function broken(event: Pick<RunEvent, "runId">, what: string): never {
  return refuse("data_loss", `the log of run ${event.runId} is broken: ${what}`, { reason: "RECORD_LOST" });
}
