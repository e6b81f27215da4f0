// Where a call of a Python function runs: on the instance that was asked if it has the worker and room on it, else on another
// instance that has both. Where all that have the worker are full, an instance without one starts it: the one that was asked, or,
// if its own is full, another one. Where every instance has one and all are full, the call waits where it was asked.

import type { ExecuteToolRequest, ExecuteToolResponse } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Pool } from "../../pool/pool.ts";
import { parseSourceConfig } from "../source-config.ts";
import type { RunCall } from "../tool-calls.ts";
import type { Fleet } from "./fleet.ts";

export interface SpreadParts {
  own: RunCall;
  /** Calls that one worker takes at a time. */
  callsOfWorker: number;
  hasFile: (file: string) => boolean;
  pool: Pick<Pool, "hasRoom" | "isWarm">;
  fleet: Pick<Fleet, "elsewhere">;
  /** Runs a call on another instance, and nowhere else. */
  runAt: (target: Target, ...parameters: Parameters<RunCall>) => AsyncIterable<ExecuteToolResponse>;
  /** Whether the failure says that nothing was started there. */
  hasNotBegun: (error: unknown) => boolean;
}

/** With the worker: only if it has room on it still. */
interface Target {
  instance: string;
  isWarm: boolean;
}

/** Of a call that another instance gives to this one because of its worker. */
export const WARM_ONLY_HEADER = "toolbus-warm-only";

/** A call where it finds room, and one that another instance gives to this one. */
export function createSpread(parts: SpreadParts): { run: RunCall; runGiven: RunCall } {
  const { own, callsOfWorker, hasFile, pool, fleet, runAt, hasNotBegun } = parts;

  async function targetsElsewhere(request: ExecuteToolRequest, signal: AbortSignal): Promise<Target[]> {
    const file = fileOf(request);
    const source = request.source?.name ?? "";
    if (file === undefined || hasRoom(request)) return [];
    let { warm, cold } = await fleet.elsewhere(source, file);
    // Before a worker is started, which takes far longer.
    if (warm.length === 0 && !pool.isWarm(source, file)) ({ warm, cold } = await fleet.elsewhere(source, file, signal));
    const free = warm.filter(({ callsInFlight }) => callsInFlight < callsOfWorker);
    const targets = free.map(({ instance }) => ({ instance, isWarm: true }));
    return pool.isWarm(source, file) ? [...targets, ...cold.map((instance) => ({ instance, isWarm: false }))] : targets;
  }

  function hasRoom(request: ExecuteToolRequest): boolean {
    const file = fileOf(request);
    const { source, scope } = request;
    return file !== undefined && pool.hasRoom(source?.name ?? "", file, scope?.principal ?? "");
  }

  function fileOf({ source }: ExecuteToolRequest): string | undefined {
    return source && parseSourceConfig(source.name, source.config).files.find(hasFile);
  }

  return {
    async *run(request, options) {
      for (const target of await targetsElsewhere(request, options.signal)) {
        let hasTold = false;
        try {
          for await (const event of runAt(target, request, options)) {
            hasTold = true;
            yield event;
          }
          return;
        } catch (error) {
          if (hasTold || options.signal.aborted || !hasNotBegun(error)) throw error;
        }
      }
      yield* own(request, options);
    },
    async *runGiven(request, options) {
      if (options.isWarmOnly && !hasRoom(request))
        refuse("resource_exhausted", "the worker has no room any more", { reason: "WORKER_POOL_FULL" });
      yield* own(request, options);
    },
  };
}
