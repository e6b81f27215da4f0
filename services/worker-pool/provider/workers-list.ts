import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Worker as WorkerMessage, WorkerSchema, WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { sourceFromFile, type ToolFile } from "../files/tool-file.ts";
import { sourceFromModuleFile } from "../hosted/module-names.ts";
import type { ModuleFile } from "../hosted/module-place.ts";
import type { Place } from "../pool/place.ts";
import type { Worker } from "../worker/worker.ts";

export interface WorkersParts {
  files: readonly ToolFile[];
  places: readonly Place[];
  modules: readonly ModuleFile[];
  instance: string;
}

/** Every process, every place that is backed off, every hosted module, and every refused file. */
export function workersFrom({ files, places, modules, instance }: WorkersParts): WorkerMessage[] {
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
  return [...workers, ...modules.map((module) => ({ ...moduleFrom(module), instance })), ...refused]
    .map((worker) => create(WorkerSchema, worker))
    .sort((a, b) => (a.source < b.source ? -1 : a.source > b.source ? 1 : 0));
}

/** A hosted module is in the service's own process: it has none of its own. */
function moduleFrom(module: ModuleFile) {
  const known = { source: sourceFromModuleFile(module.file), file: module.file };
  if (module.kind === "refused") return { ...known, state: WorkerState.REFUSED, reason: module.reason };
  if (module.kind === "loading") return { ...known, state: WorkerState.STARTING };
  const { tools, thread, callsTotal } = module;
  return {
    ...known,
    state: WorkerState.READY,
    functions: tools.map(({ name }) => name),
    callsTotal: BigInt(callsTotal),
    callsInFlight: thread?.callsInFlight ?? 0,
    ...(thread && { startTime: timestampFromMs(thread.startedAtMs) }),
  };
}

function workersAt({ state, workers }: Place) {
  const current = state.kind === "ready" ? state.worker : undefined;
  const processes = [...workers].map((worker) =>
    processFrom(worker, worker === current ? WorkerState.READY : WorkerState.STOPPING),
  );
  if (state.kind === "starting") return [{ state: WorkerState.STARTING }, ...processes];
  if (state.kind !== "backed_off") return processes;
  const { reason, retryAtMs } = state;
  return [{ state: WorkerState.BACKED_OFF, reason, retryTime: timestampFromMs(retryAtMs) }, ...processes];
}

function processFrom(worker: Worker, state: WorkerState) {
  return {
    state,
    processId: worker.pid,
    callsInFlight: worker.callsInFlight,
    startTime: timestampFromMs(worker.startedAtMs),
    lastUseTime: timestampFromMs(worker.lastUsedAtMs),
  };
}
