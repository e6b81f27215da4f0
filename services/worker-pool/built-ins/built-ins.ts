import type { BuiltinPolicy } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { builtInName } from "#runtime/agent-file/built-in-name.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { Answer } from "../calls/answer.ts";
import type { Permits } from "../pool/permits.ts";
import type { CommandSettings } from "./built-in.ts";

/** Loaded when somebody first asks for them: what their arguments are described with takes 10 MB. */
export const loadBuiltIns = () => import("./tools.ts");

interface BuiltInRequest {
  tool: string;
  policy: BuiltinPolicy | undefined;
  principal: string;
  argumentsJson: string;
  /** Undefined for the service's own time. */
  timeoutMs: number | undefined;
  signal: AbortSignal;
}

export type BuiltIns = ReturnType<typeof createBuiltIns>;

interface BuiltInsOptions {
  commands: CommandSettings;
  callMs: number;
  /** One for each call. */
  permits: Permits;
}

export function createBuiltIns(options: BuiltInsOptions) {
  const closing = new AbortController();

  /** A place, and what is left of the call's time by then. */
  async function takePlace({ tool, principal }: BuiltInRequest, timeoutMs: number, signal: AbortSignal) {
    const startedAtMs = performance.now();
    using limit = timeoutSignal(timeoutMs);
    using ending = openEnding(signal, limit);
    try {
      const release = await options.permits.acquire(ending.signal, principal);
      return { release, leftMs: Math.max(0, timeoutMs - (performance.now() - startedAtMs)) };
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      return refuse("resource_exhausted", `${tool} was not started in time: everything is busy`, {
        reason: "WORKER_POOL_FULL",
      });
    }
  }

  return {
    /** Rejects with a Failure where nothing was started; what the tool refuses or fails at is its error. */
    async call(request: BuiltInRequest): Promise<Answer> {
      const { tool, policy, argumentsJson, timeoutMs = options.callMs, signal } = request;
      const { builtInByName } = await loadBuiltIns();
      const builtIn =
        builtInByName.get(tool) ??
        refuse("not_found", `there is no built-in ${JSON.stringify(tool)}`, { reason: "TOOL_NOT_FOUND" });
      const named = builtInName(policy);
      if (policy === undefined || named !== tool)
        return refuse("failed_precondition", `${tool} is called under a policy for ${named ?? "nothing"}`, {
          reason: "TOOL_NOT_ALLOWED",
        });
      using ending = openEnding(signal, closing.signal);
      const ends = ending.signal;
      const { release, leftMs } = await takePlace(request, timeoutMs, ends);
      try {
        const value = await builtIn.run({ policy, timeoutMs: leftMs, signal: ends }, argumentsJson, options.commands);
        return { kind: "result", resultJson: JSON.stringify(value) };
      } catch (error) {
        if (ends.aborted || !(error instanceof Failure)) throw error;
        return { kind: "error", error: error.message };
      } finally {
        release();
      }
    },
    [Symbol.dispose]() {
      closing.abort(new Failure("unavailable", "the worker pool stops", { reason: "INSTANCE_STOPPING" }));
    },
  };
}
