import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { clientFor } from "../../clients.ts";
import type { Part } from "../provider/fleet/fleet.ts";
import { type SpreadParts, WARM_ONLY_HEADER } from "../provider/fleet/spread-calls.ts";

const PART_TIMEOUT_MS = 15_000;

/** The other instances of the pool, as clients of what each of them serves under its own name. */
export function createPeers(bus: Bus, service: string, telemetry: Pick<Telemetry, "clientTracing">) {
  const interceptors = clientInterceptors({ telemetry });
  const optionsOf = (instance: string) => ({ process: instanceService(service, instance), interceptors });

  const runAt: SpreadParts["runAt"] = ({ instance, isWarm }, request, { signal }) => {
    const headers = isWarm ? { [WARM_ONLY_HEADER]: "1" } : undefined;
    const client = clientFor(bus, ToolProviderService, optionsOf(instance));
    return withoutPrincipal(() =>
      client.executeTool({ ...request, ...timedBy(request.deadline) }, { signal, ...(headers && { headers }) }),
    );
  };

  /** Asked by the service itself: who asks it has been looked at here. */
  function partOf(instance: string): Part {
    const client = clientFor(bus, WorkerService, optionsOf(instance));
    return {
      async list(signal) {
        const options = { signal, timeoutMs: PART_TIMEOUT_MS };
        const pages = await withoutPrincipal(() =>
          allPages((pageToken) => client.listWorkers({ pageToken, pageSize: 1_000 }, options)),
        );
        const workers = pages.flatMap((page) => page.workers);
        return { workers, refusedFiles: pages.flatMap((page) => page.refusedFiles) };
      },
      async stop(workerId, force, signal) {
        try {
          await withoutPrincipal(() => client.stopWorker({ workerId, force }, { signal }));
          return true;
        } catch (error) {
          if (failureFromConnectError(error).reason === "WORKER_NOT_FOUND") return false;
          throw error;
        }
      },
      async *watchLogs(filter, signal) {
        const updates = withoutPrincipal(() => client.watchWorkerLogs(filter, { signal }));
        for await (const { update } of updates) yield update;
      },
    };
  }

  return { partOf, runAt };
}

/** It was full, or did not get the call. */
export function hasNotBegun(error: unknown): boolean {
  return deliveryOf(error) === "NOT_SENT" || failureFromConnectError(error).reason === "WORKER_POOL_FULL";
}
