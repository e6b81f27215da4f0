import { create } from "@bufbuild/protobuf";
import { ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { BucketEvictionOptions } from "#runtime/bus/buckets/bucket-eviction.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { askOnOwnBehalf, clientFor } from "../../../clients.ts";
import type { FindProvider } from "../../sessions/offers/provider-client.ts";
import { decodeSession, encodeSession, type SessionRecord } from "../../sessions/session-record.ts";
import type { ForgetSession } from "../../sessions/spaces.ts";
import { CALLER_PROVIDER } from "../../tools/tool-set/offer.ts";

export const sessionPlace = {
  bucket: "toolbus_sessions",
  prefix: "",
  codec: { encode: encodeSession, decode: decodeSession },
  holderOf: ({ principal }: SessionRecord) => principal,
} as const;

const TIMEOUT_MS = 5_000;
const DAY_MS = 24 * 60 * 60_000;
/** A sweep asks for so many sessions; the next one goes on behind them. */
const MOST_ASKED = 2_000;

interface SessionRetentionParts {
  hasRuns: (sessionId: string) => Promise<boolean>;
  forgetSession: ForgetSession;
  /** Ends the streams of the session's caller, and forgets what it declared; false where nobody could be told. */
  forgetCaller: (session: SessionRecord) => Promise<boolean>;
}

/**
 * Sessions that may go when room gets short: no run of theirs stands any more, in which case the orchestrator has found all of
 * them ended for its retention, and nothing waits for their agents. What stands of them elsewhere goes first, so that a session
 * of the same id is a new one.
 */
export function sessionRetention(clock: Clock, parts: SessionRetentionParts): BucketEvictionOptions<SessionRecord> {
  return {
    place: sessionPlace,
    keptMs: DAY_MS,
    mostAsked: MOST_ASKED,
    clock,
    async mayGo(session) {
      const { id, state, nextAgent } = session;
      const isClosed = state === SessionState.CLOSED;
      if (!isClosed && (state !== SessionState.ACTIVE || nextAgent !== "")) return false; // it is being switched
      if (await parts.hasRuns(id)) return false;
      if (!(await parts.forgetSession({ sessionId: id, closed: isClosed }))) return false;
      return isClosed || parts.forgetCaller(session); // one that was closed has let go of it
    },
  };
}

export function createForgetCaller(find: FindProvider): SessionRetentionParts["forgetCaller"] {
  return async ({ id: sessionId, agent, principal }) => {
    using limit = timeoutSignal(TIMEOUT_MS);
    const scope = create(ScopeSchema, { sessionId, agent, principal });
    try {
      await find(CALLER_PROVIDER)?.releaseScope(scope, { signal: limit, forgetsSession: true });
      return true;
    } catch {
      return false; // the next sweep tells it again
    }
  };
}

/** Whether the orchestrator has a run of the session. */
export function createHasRuns(bus: Bus, telemetry: Pick<Telemetry, "clientTracing">) {
  const interceptors = clientInterceptors({ telemetry });
  const runs = clientFor(bus, RunService, { interceptors, defaultTimeoutMs: TIMEOUT_MS });
  return async (sessionId: string): Promise<boolean> =>
    (await askOnOwnBehalf(() => runs.listRuns({ sessionId, pageSize: 1 }))).runs.length > 0;
}
