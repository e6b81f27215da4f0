import { toJsonString } from "@bufbuild/protobuf";
import { type ToolCallRecord, ToolCallRecordSchema } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { type AppendOutcome, appendFenced, lastOf } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Part } from "../documents.ts";
import { decideDuty } from "../duty.ts";
import type { CallStore } from "../record.ts";
import type { Waiters } from "../waiters.ts";
import { dutyHeader } from "./call-duties.ts";
import { openCallHolders } from "./call-holders.ts";
import { type CallNews, openCallNews } from "./call-news.ts";
import { createDocuments } from "./documents.ts";
import { type RecentCall, RecentCalls } from "./recent-calls.ts";

const PLACE = { bucket: "toolbus_calls", prefix: "", schema: ToolCallRecordSchema } as const;

const subjectOf = (callId: string) => `$KV.${PLACE.bucket}.${callId}`;

/** Larger records are read by those who need them instead of being told. */
const MAX_TOLD_CHARACTERS = 8_192;

export interface CallBus {
  waiters: Waiters;
  /** The calls that this router executes. */
  executing: Pick<ReadonlySet<string>, "has">;
  /** Whether this router has to do with a call beyond those that it waits for. */
  isConcerned?: (news: CallNews) => boolean;
  /** Something was written that is due at once. */
  onDue?: () => void;
  /** Told what stands of such a call; undefined when news may have been missed. */
  onNews?: (record: ToolCallRecord | undefined) => void;
  onFault?: (fault: string) => void;
}

export interface OpenCallStore extends CallStore, Disposable {
  /** What this router knows of a call without asking. */
  known(callId: string): RecentCall | undefined;
  /** This router has to do with a call; what stands of it was told by who wrote it. */
  learn(record: ToolCallRecord, revision: number): void;
  /** Tells that calls have changed, whatever this router knows of them: who waits for one reads it. */
  tellAgain(callIds: readonly string[]): void;
}

/** A record of a session is written when the session is there; clocks may differ by so much. */
const CLOCKS_APART_MS = 3_600_000;

function partOf({ id, createdAtMs }: { id: string; createdAtMs: number }): Part {
  return { since: new Date(createdAtMs - CLOCKS_APART_MS), containing: `"sessionId":${JSON.stringify(id)}` };
}

/** The recorded calls, with the news and the questions about them that go between routers. */
export async function openCallStore(bus: Bus, calls: CallBus): Promise<OpenCallStore> {
  using stack = new DisposableStack();
  const {
    waiters,
    executing,
    isConcerned = () => false,
    onNews = () => {},
    onDue = () => {},
    onFault = () => {},
  } = calls;
  const documents = createDocuments(bus, PLACE);
  const recent = new RecentCalls();
  const news = stack.use(
    await openCallNews(bus, (one) => {
      if (one === undefined) forgetAll();
      else take(one).catch((error: unknown) => miss(one, error));
    }),
  );
  const holders = stack.use(openCallHolders(bus, executing));

  function forgetAll(): void {
    recent.forgetAll();
    onNews(undefined);
    waiters.wakeAll();
  }

  async function take(one: CallNews): Promise<void> {
    const { callId } = one;
    const isWanted = isConcerned(one);
    if (!isWanted && !waiters.has(callId) && !recent.has(callId)) return;
    const { stands } = one;
    if (stands === undefined) recent.forget(callId);
    else if (!recent.isKnown(callId, stands.revision)) recent.put(stands.record(), stands.revision);
    waiters.wake(callId);
    const record = isWanted ? await glance(callId) : undefined;
    if (record) onNews(record);
  }

  /** Who waits for the call reads what stands. */
  function miss({ callId }: CallNews, error: unknown): void {
    recent.forget(callId);
    waiters.wake(callId);
    onFault(`news of call ${callId} cannot be read: ${messageFromUnknown(error)}`);
  }

  async function glance(callId: string): Promise<ToolCallRecord | undefined> {
    return recent.get(callId)?.record ?? (await readFresh(callId))?.record;
  }

  async function readFresh(callId: string): Promise<RecentCall | undefined> {
    const found = await documents.read(callId);
    if (found === undefined) return undefined;
    const { value: record, revision } = found;
    keep(record, revision);
    return { record, revision };
  }

  function keep(record: ToolCallRecord, revision: number, json?: string): void {
    const characters = json?.length ?? record.argumentsJson.length + (record.result?.outputJson.length ?? 0);
    if (characters <= MAX_TOLD_CHARACTERS) recent.put(record, revision);
    else recent.forget(record.callId);
  }

  /** A record that has left leaves a marker for a while, which is no record. */
  async function createAnew(record: ToolCallRecord): Promise<boolean> {
    const standing = await lastOf(bus, subjectOf(record.callId));
    if (standing === null || standing.data.length > 0) return false;
    return (await write(record, undefined, standing.seq)).kind === "appended";
  }

  async function write(
    record: ToolCallRecord,
    before: RecentCall | undefined,
    expectedLastSequence = before?.revision ?? 0,
  ): Promise<AppendOutcome> {
    const json = toJsonString(ToolCallRecordSchema, record);
    const now = Date.now();
    const duty = decideDuty(record, before?.record, now);
    const outcome = await appendFenced(bus, {
      subject: subjectOf(record.callId),
      expectedLastSequence,
      payload: json,
      headers: dutyHeader(duty),
    });
    if (outcome.kind === "conflict") return outcome;
    keep(record, outcome.sequence, json);
    if (duty.kind === "look" && duty.at <= now) onDue();
    return outcome;
  }

  const owned = stack.move();
  return {
    read: async (callId) => (await readFresh(callId))?.record,
    glance,
    create: async (record) => (await write(record, undefined)).kind === "appended" || createAnew(record),
    async update(callId, decide) {
      for (let guess = recent.get(callId); ; guess = undefined) {
        const before = guess ?? (await readFresh(callId));
        if (before === undefined) return undefined;
        const after = decide(before.record);
        if (after === undefined && guess !== undefined) continue; // a guess may be refuted
        if (after === undefined) return { before: before.record, record: before.record, hasChanged: false };
        const outcome = await write(after, before);
        if (outcome.kind === "appended") return { before: before.record, record: after, hasChanged: true };
      }
    },
    list: (signal, session) => documents.list(signal, session && partOf(session)),
    announce(callId) {
      waiters.wake(callId); // those here need not wait for the bus
      news.tell(callId, recent.get(callId));
    },
    tellAgain: (callIds) => news.tellAgain(callIds),
    isHeld: holders.isHeld,
    known: (callId) => recent.get(callId),
    learn: keep,
    [Symbol.dispose]: () => owned.dispose(),
  };
}
