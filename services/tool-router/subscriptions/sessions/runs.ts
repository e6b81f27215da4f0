import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { clientFor } from "../../../clients.ts";

const TIMEOUT_MS = 5_000;
const PATIENCE_MS = 60_000;

export function openSessionRuns(
  bus: Bus,
  options: { telemetry: Pick<Telemetry, "clientTracing">; logger: { warn(facts: object, message: string): void } },
) {
  const interceptors = clientInterceptors(options);
  const runs = clientFor(bus, RunService, { interceptors });
  const closing = new AbortController();
  const underWay = new Set<Promise<void>>();

  /** The latest first: those that still live are among them as a rule. */
  async function cancelOnce(session: Session, reason: string, onFirstPage: () => void): Promise<void> {
    const { id: sessionId, agent, nextAgent, principal } = session;
    const isClosing = reason !== SWITCHED;
    const statuses = isClosing ? LIVING : [RunState.REQUIRES_ACTION];
    const limits = { timeoutMs: TIMEOUT_MS, signal: closing.signal };
    const cancel = ({ id: runId }: { id: string }) => runs.cancelRun({ runId, reason }, limits).catch(unlessEnded);
    let pageToken = "";
    do {
      const page = await runs.listRuns({ sessionId, states: statuses, pageSize: 1_000, pageToken }, limits);
      const ending = page.runs.filter((run) => isClosing || run.agent !== (nextAgent || agent));
      await withPrincipal(principal, () => Promise.all(ending.map(cancel)));
      onFirstPage();
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  async function retry(session: Session, reason: string, onFirstEnd: () => void): Promise<void> {
    const cancel = () => cancelOnce(session, reason, onFirstEnd);
    const patience = { initialMs: 200, maxMs: 5_000, patienceMs: PATIENCE_MS, closing: closing.signal };
    await retryWhile(() => true, cancel, { ...patience, onRetry: onFirstEnd }).catch((error: unknown) => {
      options.logger.warn({ sessionId: session.id, err: error }, "runs of a former agent could not be canceled");
    });
  }

  return {
    /**
     * Cancels runs that cannot go on: the parked ones of agents that the session no longer has; all, when it is closed. Goes on
     * in the background when the orchestrator cannot be reached.
     */
    async cancel(session: Session, reason: string): Promise<void> {
      const firstEnd = Promise.withResolvers<void>();
      const task = retry(session, reason, firstEnd.resolve).finally(() => underWay.delete(task));
      underWay.add(task);
      await Promise.race([firstEnd.promise, task]);
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.all(underWay);
    },
  };
}

const SWITCHED = "agent_switched";

const LIVING = [RunState.QUEUED, RunState.IN_PROGRESS, RunState.REQUIRES_ACTION];

/** It came to its end by itself. */
function unlessEnded(error: unknown): void {
  const failure = failureFromConnectError(error);
  if (failure.code !== "failed_precondition" && failure.code !== "not_found") throw failure;
}
