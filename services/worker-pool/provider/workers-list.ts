import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type RefusedFile, RefusedFileSchema } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import { type Worker as WorkerMessage, WorkerSchema, WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import type { ModuleFile } from "../hosted/hosted-modules.ts";
import type { SlotState, SourceSlot } from "../pool/source-slot.ts";
import type { Worker } from "../worker/worker.ts";

export interface WorkersParts {
  files: readonly ModuleFile[];
  slots: readonly SourceSlot[];
  instance: string;
}

/** Every process, and every slot that starts one or is backed off. */
export function workersFrom({ files, slots, instance }: WorkersParts): WorkerMessage[] {
  const functions = new Map(
    files.map((file) => [file.file, file.kind === "offered" ? file.functions.map(({ name }) => name) : []]),
  );
  const workers = slots.flatMap((slot) => {
    const known = { source: slot.source, file: slot.file, instance, callsTotal: BigInt(slot.callsTotal) };
    return workersAt(slot).map(({ start, ...worker }) => ({
      ...known,
      id: idOfWorker({ instance, file: slot.file, start }),
      functions: functions.get(slot.file) ?? [],
      ...worker,
    }));
  });
  return workers
    .map((worker) => create(WorkerSchema, worker))
    .sort((a, b) => (a.source < b.source ? -1 : a.source > b.source ? 1 : 0));
}

/** Of its pool, its file, and which start of the file it is. Names of files hold letters that ids do not. */
export function idOfWorker({ instance, file, start }: { instance: string; file: string; start: number }): string {
  const fileId = createHash("sha256").update(`${instance}\0${file}`).digest("hex").slice(0, 16);
  return `${fileId}-${start}`;
}

/** The files of workers and of hosted modules that cannot be used, by name. */
export function refusedFilesFrom(files: readonly ModuleFile[]): RefusedFile[] {
  return files
    .filter((file) => file.kind === "refused")
    .map(({ file, reason }) => create(RefusedFileSchema, { file, faults: [reason] }))
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

function workersAt({ current, spare, workers }: SourceSlot) {
  const processes = [...workers].map(([worker, start]) => ({ ...processFrom(worker, stateOf(worker)), start }));
  return [...[current.state, spare.state].flatMap(startFrom), ...processes];

  function stateOf(worker: Worker): WorkerState {
    const isOf = ({ state }: typeof current) => state.kind === "ready" && state.worker === worker && worker.accepts;
    if (isOf(current)) return WorkerState.READY;
    return isOf(spare) ? WorkerState.SPARE : WorkerState.STOPPING;
  }
}

/** One that has no process yet. */
function startFrom(state: SlotState) {
  if (!("start" in state)) return [];
  const { start } = state;
  if (state.kind === "starting") return { state: WorkerState.STARTING, start };
  return { state: WorkerState.BACKED_OFF, reason: state.detail, retryTime: timestampFromMs(state.retryAtMs), start };
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
