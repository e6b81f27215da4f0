/**
 * Starts a run when a session is idle and events wait in the inbox of its agent.
 *
 * self-wake-1  The run's idempotency key names the last event in the inbox: a repeated wake-up, after a crash too, finds the same run. So an
 *     event starts at most one run; if that run did not take it, the event waits for the next one. A run has a successor only if it
 *     could not read its inbox, which can be read by now, or had no room for the event beside those before it (inbox-2).
 *     A run that a client deleted has one too: nobody knows how it ended, and the event still waits.
 * self-wake-2  Runs that start by themselves are counted from the last run that a client or a person's message started. So agents whose
 *     runs cause each other's events stop at the limit, and so do the runs of one event that fail at its inbox one after the other,
 *     or are deleted.
 * self-wake-3  In the session of an agent that another agent called (LOOP-17) nothing starts by itself: the caller's limits would not hold
 *     for that run, and its cost would not count for the caller. The events wait for the session's next run.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemberKind } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { readState, unlessBroken } from "../../log/journal.ts";
import type { Inbox } from "../../loop/inbox/inbox.ts";
import type { Agents } from "../../loop/tools/tool-router.ts";
import { type AcceptanceOptions, acceptRun } from "../create/acceptance.ts";
import type { SessionSource } from "../create/creation.ts";
import { isCalledSession } from "../sub-agents/called-session.ts";

export interface SelfWakeOptions extends AcceptanceOptions {
  readonly sessions: Pick<SessionSource, "getSession">;
  readonly agents: Agents;
  readonly inbox: Pick<Inbox, "listInboxEvents" | "getRunContext">;
  readonly logger: OperatorLog;
  readonly audit: Audit;
}

export const defaultMaxSelfWakes = 10;

/** Gives whether there is a run that has to be worked on. */
export async function startFromInbox(
  options: SelfWakeOptions,
  sessionId: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (await isCalledSession(options, sessionId)) return false; // self-wake-3
  const session = await options.sessions.getSession(sessionId, { signal, principal: "" });
  const { agent: name, principal, switchCount, carry } = session;
  if (session.state === SessionState.CLOSED) return false;
  const by = { signal, principal };
  const page = (pageToken: string) => options.inbox.listInboxEvents({ sessionId, agent: name, pageToken }, by);
  const events = (await allPages(page)).flatMap((page) => page.events);
  const last = events.at(-1);
  if (last === undefined) return false;
  const agent = await options.agents.getAgent(name, by);
  if (agent.wakeOnInbox === false) return false;
  const selfWakeCount = await countSelfWakes(options, sessionId, events);
  const about = { sessionId, agent: name, switchCount, carry, principal, selfWakeCount };
  const read = () => options.inbox.getRunContext({ sessionId, agent: name }, by);
  const [eventId, idempotencyKey] = [last.eventId, `inbox ${name} ${last.eventId}`];
  return startOnce(options, agent, about, { eventId, idempotencyKey, read });
}

/** self-wake-1, self-wake-2. */
async function startOnce(
  options: SelfWakeOptions,
  agent: Agent,
  about: MessageInitShape<typeof RunAcceptedSchema> & { sessionId: string; selfWakeCount: number },
  { eventId, idempotencyKey, read }: { eventId: string; idempotencyKey: string; read: () => Promise<unknown> },
): Promise<boolean> {
  if (isOverLimit(options, agent, about)) return false;
  const startNext = (runId: string, count: number) => {
    const next = { ...about, selfWakeCount: Math.max(about.selfWakeCount, count) };
    return startOnce(options, agent, next, { eventId, idempotencyKey: `${idempotencyKey} after ${runId}`, read });
  };
  const run = await acceptRun(options, create(RunAcceptedSchema, { ...about, idempotencyKey })).catch(idOfDeleted);
  if (typeof run === "string") {
    await read(); // a look that fails is put back
    return startNext(run, about.selfWakeCount + 1);
  }
  if (run.phase.kind !== "ended") return true;
  const { endReason } = run.phase.ended;
  const isForNext = run.inbox ? !run.inbox.eventIds.includes(eventId) : endReason === RunEndReason.INBOX_UNAVAILABLE;
  if (!isForNext) return false;
  if (!run.inbox) await read(); // a look that fails is put back
  return startNext(run.runId, run.inbox ? 0 : run.accepted.selfWakeCount + 1);
}

/** accept-4: the run that the key led to. */
function idOfDeleted(error: unknown): string {
  if (error instanceof Failure && error.reason === "RUN_NOT_FOUND" && error.metadata?.run_id)
    return error.metadata.run_id;
  throw error;
}

/** self-wake-2. */
async function countSelfWakes(
  { queues, log }: SelfWakeOptions,
  sessionId: string,
  events: readonly InboxEvent[],
): Promise<number> {
  if (events.some(isFromPerson)) return 1;
  const last = await queues.last(sessionId);
  const before = last && (await readState(log, last.queued.runId).catch(unlessBroken));
  return (before?.accepted.selfWakeCount ?? 0) + 1;
}

function isFromPerson({ event }: InboxEvent): boolean {
  return event.case === "message" && event.value.authorKind === MemberKind.PERSON;
}

function isOverLimit(
  { logger, audit }: SelfWakeOptions,
  agent: Agent,
  { sessionId, selfWakeCount, principal = "" }: { sessionId: string; selfWakeCount: number; principal?: string },
): boolean {
  const limit = agent.limits?.maxSelfWakes ?? defaultMaxSelfWakes;
  if (selfWakeCount <= limit) return false;
  const message = `${limit} runs in a row started by themselves: events wait until a client or a person says something`;
  logger.warn({ sessionId, agent: agent.name, limit }, message);
  audit({ kind: AuditKind.BLOCKED, agent: agent.name, sessionId, rule: "limits.maxSelfWakes", message }, principal);
  return true;
}
