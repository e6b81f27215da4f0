import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Worker as WorkerMessage, WorkerSchema, WorkerState } from "#gen/toolbus/worker/v1/workers_pb.ts";
import { sourceFromFile, type ToolFile } from "./files/tool-file.ts";
import type { Place } from "./pool/place.ts";
import type { Worker } from "./worker/worker.ts";

/** Every process, every place that is backed off, and every refused file. */
export function workersFrom(files: readonly ToolFile[], places: readonly Place[], instance: string): WorkerMessage[] {
  const functions = new Map(
    files.map((file) => [file.file, file.kind === "offered" ? file.functions.map(({ name }) => name) : []]),
  );
  const workers = places.flatMap((place) => {
    const known = { source: place.source, file: place.file, instance, callsTotal: BigInt(place.callsTotal) };
    return workersAt(place).map((worker) => ({ ...known, functions: functions.get(place.file) ?? [], ...worker }));
  });
  const refused = files
    .filter((file) => file.kind === "refused")
    .map(({ file, reason }) => ({ source: sourceFromFile(file), file, state: WorkerState.REFUSED, reason, instance }));
  return [...workers, ...refused]
    .map((worker) => create(WorkerSchema, worker))
    .sort((a, b) => (a.source < b.source ? -1 : a.source > b.source ? 1 : 0));
}

function workersAt({ state, workers }: Place) {
  const current = state.kind === "ready" ? state.worker : undefined;
  const processes = [...workers].map((worker) =>
    processFrom(worker, worker === current ? WorkerState.READY : WorkerState.STOPPING),
  );
  if (state.kind === "starting") return [{ state: WorkerState.STARTING }, ...processes];
  if (state.kind !== "backed_off") return processes;
  const { reason, retryAtMs } = state;
  return [{ state: WorkerState.BACKED_OFF, reason, retryAt: timestampFromMs(retryAtMs) }, ...processes];
}

function processFrom(worker: Worker, state: WorkerState) {
  return {
    state,
    processId: worker.pid,
    callsInFlight: worker.callsInFlight,
    startedAt: timestampFromMs(worker.startedAtMs),
    lastUsedAt: timestampFromMs(worker.lastUsedAtMs),
  };
}
