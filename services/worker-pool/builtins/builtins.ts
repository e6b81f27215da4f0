import type { BuiltinPolicy } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { builtinName } from "#runtime/agent-file/builtin-name.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { Answer } from "../calls/answer.ts";
import type { Permits } from "../pool/permits.ts";
import type { CommandSettings } from "./builtin.ts";

/** Loaded when somebody first asks for them: what their arguments are described with takes 10 MB. */
export const loadBuiltins = () => import("./tools.ts");

interface BuiltinRequest {
  tool: string;
  policy: BuiltinPolicy | undefined;
  argumentsJson: string;
  /** Undefined for the service's own time. */
  timeoutMs: number | undefined;
  signal: AbortSignal;
}

export type Builtins = ReturnType<typeof createBuiltins>;

interface BuiltinsOptions {
  commands: CommandSettings;
  callMs: number;
  /** One for each call. */
  permits: Permits;
}

export function createBuiltins(options: BuiltinsOptions) {
  const closing = new AbortController();

  /** A place, and what is left of the call's time by then. */
  async function takePlace(tool: string, timeoutMs: number, signal: AbortSignal) {
    const startedAtMs = performance.now();
    using limit = timeoutSignal(timeoutMs);
    using ending = openEnding(signal, limit);
    try {
      const release = await options.permits.acquire(ending.signal);
      return { release, leftMs: Math.max(0, timeoutMs - (performance.now() - startedAtMs)) };
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      return refuse(
        "resource_exhausted",
        `${tool} was not started within ${Math.round(timeoutMs)}ms: everything is busy`,
        { reason: "WORKER_POOL_FULL" },
      );
    }
  }

  return {
    /** Rejects with a Failure where nothing was started; what the tool refuses or fails at is its error. */
    async call(request: BuiltinRequest): Promise<Answer> {
      const { tool, policy, argumentsJson, timeoutMs = options.callMs, signal } = request;
      const { builtinByName } = await loadBuiltins();
      const builtin =
        builtinByName.get(tool) ??
        refuse("not_found", `there is no built-in ${JSON.stringify(tool)}`, { reason: "TOOL_NOT_FOUND" });
      const named = builtinName(policy);
      if (policy === undefined || named !== tool)
        return refuse("failed_precondition", `${tool} is called under a policy for ${named ?? "nothing"}`, {
          reason: "TOOL_NOT_ALLOWED",
        });
      using ending = openEnding(signal, closing.signal);
      const ends = ending.signal;
      const { release, leftMs } = await takePlace(tool, timeoutMs, ends);
      try {
        const value = await builtin.run({ policy, timeoutMs: leftMs, signal: ends }, argumentsJson, options.commands);
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
