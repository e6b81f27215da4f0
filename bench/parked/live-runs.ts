import { fromBinary } from "@bufbuild/protobuf";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import type { World } from "../loop/world.ts";

type EventKind = NonNullable<RunEvent["event"]["case"]>;

/** What is told live of all runs, heard with one subscription: a watch of each run would be a cost of its own. */
export interface LiveRuns extends Disposable {
  /** Resolves when the run has such an event after this call. */
  next(runId: string, kind: EventKind): Promise<void>;
  /** Resolves when the run has parked, also when it had before this call. To be asked once a run. */
  parked(runId: string): Promise<void>;
}

/** What got lost on the way is looked for in the log after so long. */
const patienceMs = 20_000;

export async function openLiveRuns({ bus }: Pick<World, "bus">): Promise<LiveRuns> {
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  const parkedEarly = new Set<string>();

  function hear({ runId, event }: RunEvent): void {
    const key = `${runId} ${event.case}`;
    if (event.case === "parked" && !waiting.has(key)) parkedEarly.add(runId);
    waiting.get(key)?.resolve();
    if (event.case !== "ended") return;
    const why = `${runId} ended: ${event.value.endReason} ${event.value.error}`;
    waiting.get(`${runId} parked`)?.reject(new Error(why));
  }

  const subscription = bus.connection.subscribe("toolbus.delta.*", {
    callback: (error, message) => {
      if (error !== null) return; // the subscription's own end
      const { update } = fromBinary(WatchRunResponseSchema, message.data);
      if (update.case === "event") hear(update.value);
    },
  });
  await bus.connection.flush();

  async function look(runId: string): Promise<void> {
    for await (const { data } of readSubject(bus, `toolbus.run.${runId}`)) {
      const { event } = fromBinary(StoredRunEventSchema, data);
      if (event !== undefined) hear(event);
    }
  }

  async function next(runId: string, kind: EventKind, whenLate?: () => Promise<void>): Promise<void> {
    const key = `${runId} ${kind}`;
    const awaited = Promise.withResolvers<void>();
    waiting.set(key, awaited);
    const late = whenLate ?? (async () => awaited.reject(new Error(`nothing was heard of ${key}`)));
    const timer = setTimeout(() => late().catch(awaited.reject), patienceMs);
    try {
      await awaited.promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(key);
    }
  }

  return {
    next: (runId, kind) => next(runId, kind),
    parked: async (runId) => (parkedEarly.delete(runId) ? undefined : next(runId, "parked", () => look(runId))),
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}
