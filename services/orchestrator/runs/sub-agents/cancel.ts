import { Failure } from "#runtime/failure/failure.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import type { ToolRouter } from "../../loop/tools/tool-router.ts";
import { type CancelOptions, cancelRun } from "../cancellation.ts";
import type { AcceptanceOptions } from "../create/acceptance.ts";
import { findRunOfCall } from "./call.ts";

export interface Canceling extends Omit<CancelOptions, "router">, AcceptanceOptions {}

/** A router whose canceled calls take the runs along that they started, whether anybody waits for those or not. */
export function cancelingSubAgents(router: ToolRouter, options: Canceling): ToolRouter {
  const whole: ToolRouter = {
    ...router,
    async cancelToolCall(request, by) {
      const { callId = "", reason = "" } = request;
      try {
        return await router.cancelToolCall(request, by);
      } finally {
        const called = await findRunOfCall(options, callId); // it goes on without a router, too
        if (called !== undefined) await cancelIfOpen({ ...options, router: whole }, called.runId, { ...by, reason });
      }
    },
  };
  return whole;
}

export async function cancelIfOpen(
  options: CancelOptions,
  runId: string,
  by: { principal: string; reason: string; signal: AbortSignal },
): Promise<void> {
  try {
    await cancelRun(options, runId, { ...by, caller: SELF });
  } catch (error) {
    if (!(error instanceof Failure && error.reason === "RUN_ENDED")) throw error;
  }
}
