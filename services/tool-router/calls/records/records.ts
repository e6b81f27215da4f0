import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { InputRequired } from "#gen/toolbus/provider/v1/input_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { isResumable } from "../../tools/tool-set/executor.ts";
import type { ToolEntry } from "../../tools/tool-set/tool-set.ts";
import { type Answer, outcomeUnknown } from "../answers/answer.ts";
import { whereFull } from "../answers/where-full.ts";
import type { CallControl } from "../in-flight.ts";
import type { Messages } from "../messages.ts";
import { type CallIdentity, differencesOf, isSameArguments, refuseForeign } from "./call-identity.ts";
import { type CallRecord, type CallRecordInit, callRecord } from "./record/call-record.ts";
import { isCanceledFor, isTombstone } from "./record/states.ts";
import { toldAnswer } from "./record/told-answer.ts";
import type { RunningCalls } from "./running.ts";
import type { CallStore } from "./store.ts";
import type { TaskIndex } from "./task-index.ts";

/*
 * Calls that must not happen twice are recorded: started before the effect, resolved after it.
 *
 *   (none) ─▶ STARTED ─────────────────────▶ RESOLVED     run by the router or a provider
 *   (none) ─▶ WAITING ─▶ PENDING ──────────▶ RESOLVED     answered from outside; from WAITING directly, too
 *   any of these, or none ─────────────────▶ CANCELED     ended by a cancellation, perhaps before it began
 *
 * records-1  The record is created before anything happens and before anything is shown. The router that creates it executes the call.
 * records-2  Every further step is a compare-and-set of the record. A router that loses follows the one that wins.
 * records-3  If no router executes a call in state STARTED, its outcome is unknown: it is resolved as that and never executed again. A
 *     router says that it executes a call from before it writes the record until after the call is resolved. Only a call whose
 *     provider goes on with it (`resumable`) is gone on with: whichever router is asked for it asks that provider again. Of a call
 *     that is answered from outside a router says so until the call is shown: before that nobody enqueues it.
 * records-4  A change is announced after each step. A router subscribes before it reads.
 * records-5  While a call waits for answers that its provider has let go of, its record holds what it waits for. If no router executes it,
 *     any that is asked for it goes on with the wait. Before the answers are sent the wait is taken out of the record, by whom has
 *     begun it last (`input_epoch`): so they are sent once, and a router that is lost after that leaves an unknown outcome (records-3).
 */

export type Begun =
  | { kind: "unrecorded" }
  /**
   * Another router began it, and was lost: `suspended`, while it waited for answers; `resumed`, while its provider executed it, which goes on
   * with it.
   */
  | { kind: "begun"; suspended?: Suspended; resumed?: true }
  /** A person or a watcher is to answer it. `isMine`: this request created the record, and not an earlier one with the same id. */
  | { kind: "open"; record: CallRecord; isMine: boolean }
  | { kind: "resolved"; answer: Answer };

/** What a call waits for whose provider has let go of it, and which wait of it this is (records-5). */
export interface Suspended {
  readonly required: InputRequired;
  readonly epoch: number;
}

export type CallFacts = Omit<CallRecordInit, "$typeName" | "state" | "createTime">;

const ROUTER_LOST = "the router that had started the call was lost during it";

/** How often a router that waits for another router's call asks whether that router still executes it. */
const HOLDER_CHECK_MS = 1_000;

/** Of a request whose call another router may have begun: what that one tells is told here, too. */
export type FollowControl = Pick<CallControl, "signal"> & Partial<Pick<CallControl, "emit">>;

export interface RecordsParts {
  store: CallStore;
  running: Pick<RunningCalls, "isHeld" | "follow">;
  tasks: Pick<TaskIndex, "add">;
  /** Who is over its quota of what all records take. */
  quota?: Pick<Quota, "requireRoomUnless">;
  /** Of changes of recorded calls, by the call. */
  waiters: KeyedListeners;
  messages?: Pick<Messages, "showResult">;
  /** The calls that this router has started and not yet finished. */
  executing: Set<string>;
}

/** Writes the records of the calls that this router executes, and follows those of other routers. */
export class Records {
  readonly #parts: RecordsParts;

  constructor(parts: RecordsParts) {
    this.#parts = parts;
  }

  /** Refuses a call that would be recorded, of a principal that has its share. One that is on record already is joined all the same. */
  async requireRoom(entry: ToolEntry, { callId, principal = "", argumentsJson = "" }: CallFacts): Promise<void> {
    if (firstState(entry) === undefined) return;
    const { quota, store } = this.#parts;
    const stands = async () => (await store.read(callId ?? "")) !== undefined;
    await quota?.requireRoomUnless(principal, argumentsJson.length, stands);
  }

  async begin(
    entry: ToolEntry,
    facts: CallFacts & { callId: string },
    now: number,
    control: FollowControl,
  ): Promise<Begun> {
    const state = firstState(entry);
    if (state === undefined) return { kind: "unrecorded" };
    const resumable = state === State.STARTED && isResumable(entry.executor);
    const record = callRecord({ ...facts, state, resumable, createTime: timestampFromMs(now) });
    if (await this.#create(record))
      return state === State.STARTED ? { kind: "begun" } : { kind: "open", record, isMine: true };
    const standing = await this.#parts.store.read(record.callId);
    if (standing === undefined) return this.begin(entry, facts, now, control); // it aged out between the two
    return this.#join(standing, record, control);
  }

  /**
   * The answer of a call that was executed before a crash and is repeated after it, whatever has changed since; undefined if
   * it has to be admitted anew.
   */
  async recall(call: CallIdentity & { callId: string }, signal: AbortSignal): Promise<Answer | undefined> {
    const standing = await this.#parts.store.read(call.callId);
    if (standing === undefined) return undefined;
    if (isCanceledFor(standing, "")) return standing.result;
    if (!isCallOf(standing, call)) return undefined;
    return standing.state === State.STARTED ? this.#follow(call.callId, { signal }) : toldAnswer(standing);
  }

  /** How a call ends that is repeated after a crash and not admitted any more; undefined for one that was not begun. */
  async endBegun(call: CallIdentity & { callId: string }, signal: AbortSignal): Promise<Answer | undefined> {
    const standing = await this.#parts.store.read(call.callId);
    if (standing === undefined || isTombstone(standing) || !isCallOf(standing, call)) return undefined;
    if (standing.state !== State.STARTED) return toldAnswer(standing);
    const answer = await this.#follow(call.callId, { signal }); // another router may have gone on with it
    return answer ?? this.finish(call.callId, outcomeUnknown(ROUTER_LOST));
  }

  /** records-5: the call waits from now on, or goes on waiting. */
  async suspend(callId: string, required: InputRequired): Promise<Suspended> {
    const updated = await this.#parts.store.update(callId, (record) =>
      record.state === State.STARTED
        ? { ...record, inputRequired: required, inputEpoch: record.inputEpoch + 1 }
        : undefined,
    );
    return { required, epoch: updated?.record.inputEpoch ?? 0 };
  }

  /** records-5: undefined when the answers are this router's to send; else the answer that another router brings about. */
  async resume(callId: string, { epoch }: Suspended, signal: AbortSignal): Promise<Answer | undefined> {
    const updated = await this.#parts.store.update(callId, ({ inputRequired, ...record }) =>
      record.state === State.STARTED && inputRequired !== undefined && record.inputEpoch === epoch ? record : undefined,
    );
    if (updated?.hasChanged) return undefined;
    this.#parts.executing.delete(callId); // else it would follow itself
    const answer = updated?.record.result ?? (await this.#follow(callId, { signal }));
    return answer ?? this.finish(callId, outcomeUnknown("another router that went on with the call was lost"));
  }

  /**
   * Resolves what `begin` began. Returns the answer that holds. A call that has happened has it also where the store is full: no due
   * work shows it then.
   */
  finish(callId: string, answer: Answer): Promise<Answer> {
    const showAnyhow = async () => {
      const standing = await this.#parts.store.readCached(callId);
      if (standing) this.#parts.messages?.showResult(standing, answer);
      return answer;
    };
    return this.#settle(callId, [State.STARTED], answer).catch(whereFull(showAnyhow));
  }

  /** Resolves a call that nobody else will ever see. Returns the answer that holds. Where the store is full, a watcher may see the call. */
  abandon(callId: string, answer: Answer): Promise<Answer> {
    const refuseUnknown = (full: Failure): never => {
      throw new Failure("unavailable", full.message, { reason: "OUTCOME_UNKNOWN", cause: full });
    };
    return this.#settle(callId, [State.WAITING, State.PENDING], answer).catch(whereFull(refuseUnknown));
  }

  /** This router does not execute the call any more. */
  release(callId: string): void {
    this.#parts.executing.delete(callId);
  }

  /** records-3: marks the call as executing before the record is written, and unmarks it if somebody else's record exists. */
  async #create(record: CallRecord): Promise<boolean> {
    this.#parts.executing.add(record.callId);
    if (record.task) await this.#parts.tasks.add(record);
    const isCreated = (await this.#parts.store.create(record)) || (await this.#replace(record));
    if (!isCreated) this.#parts.executing.delete(record.callId);
    return isCreated;
  }

  /** Replaces a tombstone that somebody else made under the id of this call. */
  async #replace(record: CallRecord): Promise<boolean> {
    const updated = await this.#parts.store.update(record.callId, (standing) =>
      isTombstone(standing) && !isCanceledFor(standing, record.principal) ? record : undefined,
    );
    if (updated?.hasChanged) this.#parts.store.announce(record.callId);
    return updated?.hasChanged ?? false;
  }

  /** Joins the call whose record existed before. */
  async #join(standing: CallRecord, record: CallRecord, control: FollowControl): Promise<Begun> {
    const { callId, state, result } = standing;
    if (isCanceledFor(standing, record.principal) && result) return { kind: "resolved", answer: result };
    const differences = differencesOf(standing, record);
    if (differences.length > 0) refuseForeign(callId, differences);
    if (state === State.STARTED) {
      const answer = await this.#follow(callId, control);
      return answer === undefined ? this.#takeOver(standing, record, control) : { kind: "resolved", answer };
    }
    const told = toldAnswer(standing);
    return told ? { kind: "resolved", answer: told } : { kind: "open", record: standing, isMine: false };
  }

  /** records-3, records-5 */
  async #takeOver({ callId }: CallRecord, record: CallRecord, control: FollowControl): Promise<Begun> {
    this.#parts.executing.add(callId);
    const updated = await this.#parts.store.update(callId, (standing) =>
      goesOn(standing) ? { ...standing, inputEpoch: standing.inputEpoch + 1 } : undefined,
    );
    const { inputRequired: required, inputEpoch: epoch } = updated?.record ?? record;
    if (updated?.hasChanged && required !== undefined) return { kind: "begun", suspended: { required, epoch } };
    if (updated?.hasChanged && record.resumable) return { kind: "begun", resumed: true };
    this.#parts.executing.delete(callId);
    if (updated?.hasChanged)
      return { kind: "resolved", answer: await this.finish(callId, outcomeUnknown(ROUTER_LOST)) };
    return this.#join(updated?.record ?? record, record, control);
  }

  /** Waits for a call that another router started. When that router is gone: records-3, or undefined for one that is gone on with. */
  async #follow(callId: string, { signal, emit }: FollowControl): Promise<Answer | undefined> {
    using _events = emit && this.#parts.running.follow(callId, emit);
    const resolved = async () => (await this.#parts.store.read(callId))?.result;
    for (;;) {
      const isHeld = await this.#parts.running.isHeld(callId, signal);
      const standing = isHeld ? undefined : await this.#parts.store.read(callId);
      if (standing !== undefined && goesOn(standing)) return undefined;
      if (!isHeld) return this.finish(callId, outcomeUnknown(ROUTER_LOST));
      using limit = timeoutSignal(HOLDER_CHECK_MS);
      using ending = openEnding(signal, limit);
      try {
        return await this.#parts.waiters.until(callId, resolved, ending.signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!limit.aborted) throw error;
      }
    }
  }

  /** records-2: returns this answer, or that of a router that was faster. */
  async #settle(callId: string, from: readonly State[], answer: Answer): Promise<Answer> {
    const updated = await this.#parts.store.update(callId, (record) =>
      from.includes(record.state) ? { ...record, state: State.RESOLVED, result: answer } : undefined,
    );
    this.#parts.store.announce(callId);
    if (!updated?.hasChanged) return updated?.record.result ?? answer;
    const { execution } = updated.record;
    return { ...(execution && { execution }), ...answer };
  }
}

/** Until when the caller waits for a call that a person or a watcher answers, and until when a result is accepted. */
export function timesOf(
  { executor, tool }: ToolEntry,
  { at }: { at: number },
  now: number,
): Pick<CallFacts, "waitExpireTime" | "expireTime"> {
  if (executor.kind !== "outside") return {};
  return {
    ...(!tool.isAsync && { waitExpireTime: timestampFromMs(Math.ceil(at)) }),
    ...(tool.ttl && { expireTime: timestampFromMs(now + durationMs(tool.ttl)) }),
  };
}

function firstState({ executor, tool, effect }: ToolEntry): State | undefined {
  if (executor.kind === "outside") return tool.isAsync ? State.PENDING : State.WAITING;
  return effect === Effect.AT_MOST_ONCE ? State.STARTED : undefined;
}

/** records-3, records-5: whether another router goes on with the call once its router is lost. */
function goesOn({ state, inputRequired, resumable }: CallRecord): boolean {
  return state === State.STARTED && (inputRequired !== undefined || resumable);
}

/** Compares what is known of a call before its name is resolved: the tool by the name that the caller used. */
function isCallOf(record: CallRecord, call: CallIdentity): boolean {
  const isNamed = record.calledAs === call.name || record.tool === call.name || record.calledAs === "";
  const isOfRun = record.sessionId === call.sessionId && record.runId === call.runId;
  return isOfRun && isNamed && isSameArguments(record.argumentsJson, call.argumentsJson);
}
