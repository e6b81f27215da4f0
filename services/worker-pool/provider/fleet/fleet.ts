// All instances of the pool as one, as one of them sees them: what they hold is spread over them, and any of them may be asked.

import { create } from "@bufbuild/protobuf";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import { type Worker, WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { DroppedLinesSchema, type WatchWorkerLogsResponse } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import type { Instances } from "#runtime/bus/ownership/instances.ts";
import { createEventQueue } from "#runtime/collections/event-queue.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";

export type LogUpdate = WatchWorkerLogsResponse["update"];

/** Workers that can be asked for: those of one instance, or of all. */
export interface Part {
  list(signal: AbortSignal): Promise<{ workers: Worker[]; refusedFiles: RefusedFile[] }>;
  /** Gives whether there is such a worker. */
  stop(workerId: string, force: boolean, signal: AbortSignal): Promise<boolean>;
  /** Lines of the source, and of calls of the principal; empty for all. */
  watchLogs(filter: { source: string; principal: string }, signal: AbortSignal): AsyncIterable<LogUpdate>;
}

export interface Elsewhere {
  /** Workers that take calls. */
  warm: readonly Worker[];
  /** Instances that have none. */
  cold: readonly string[];
}

export interface FleetParts {
  instance: string;
  own: Part;
  instances: Instances;
  partOf: (instance: string) => Part;
  logger: { warn(message: string): void };
}

const LOOK_AGAIN_MS = 2_000;
/** How long it counts what another instance has told of its workers. */
const VIEW_MS = 1_000;
const WATCHER_LIMIT = 2_000;

export class Fleet implements Part {
  readonly #parts: FleetParts;
  #view: { untilMs: number; workers: Promise<Worker[]> } = { untilMs: 0, workers: Promise.resolve([]) };

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  async list(signal: AbortSignal) {
    const others = await this.#askOthers(await this.#others(signal), (other) => other.list(signal));
    const all = [await this.#parts.own.list(signal), ...others];
    const files = new Map(all.flatMap(({ refusedFiles }) => refusedFiles).map((file) => [file.file, file]));
    return { workers: all.flatMap(({ workers }) => workers), refusedFiles: [...files.values()] };
  }

  async stop(workerId: string, force: boolean, signal: AbortSignal): Promise<boolean> {
    if (await this.#parts.own.stop(workerId, force, signal)) return true;
    const answers = await this.#askOthers(await this.#others(signal), (other) => other.stop(workerId, force, signal));
    return answers.includes(true);
  }

  /** Also of instances that come later. */
  async *watchLogs(filter: { source: string; principal: string }, signal: AbortSignal): AsyncGenerator<LogUpdate> {
    const { instance, own, instances, partOf } = this.#parts;
    const leftOut = (count: number): LogUpdate => ({
      case: "dropped",
      value: create(DroppedLinesSchema, { count: BigInt(count) }),
    });
    const queue = createEventQueue<LogUpdate>({ limit: WATCHER_LIMIT, leftOut });
    const over = new AbortController();
    using ending = openEnding(signal, over.signal);
    const followed = new Set<string>();
    const follow = async (name: string, part: Part) => {
      if (followed.has(name)) return;
      followed.add(name);
      try {
        for await (const update of part.watchLogs(filter, ending.signal)) queue.push(update);
      } catch {
        instances.forget(name); // it is found again if it is there
      } finally {
        followed.delete(name);
      }
    };
    const look = async () => {
      while (!ending.signal.aborted) {
        const found = await instances.list(ending.signal).catch(() => []); // asked again soon
        for (const name of found) if (name !== instance) void follow(name, partOf(name));
        await delay(LOOK_AGAIN_MS, ending.signal).catch(() => {}); // the loop looks at the signal itself
      }
    };
    ending.signal.addEventListener("abort", () => queue.end(), { once: true });
    if (signal.aborted) return;
    void follow(instance, own);
    void look();
    try {
      yield* queue;
    } finally {
      over.abort();
    }
  }

  /** What other instances have for a file of a source: as told a moment ago at most, or by all that are there now. */
  async elsewhere(source: string, file: string, signal?: AbortSignal): Promise<Elsewhere> {
    const known = () => this.#parts.instances.known().filter((name) => name !== this.#parts.instance);
    const others = signal ? await this.#others(signal) : known();
    if (signal || this.#view.untilMs <= Date.now()) {
      const asked = this.#askOthers(others, (other) => other.list(AbortSignal.timeout(VIEW_MS)));
      const workers = asked.then((answers) => answers.flatMap((answer) => answer.workers));
      this.#view = { untilMs: Date.now() + VIEW_MS, workers };
    }
    const workers = (await this.#view.workers).filter((worker) => worker.source === source && worker.file === file);
    const cold = others.filter((name) => workers.every(({ instance }) => instance !== name));
    return { warm: workers.filter(({ state }) => state === WorkerState.READY), cold };
  }

  async #others(signal: AbortSignal): Promise<string[]> {
    const { instance, instances } = this.#parts;
    return (await instances.list(signal)).filter((other) => other !== instance);
  }

  /** One that does not answer is left out. */
  async #askOthers<R>(others: readonly string[], ask: (other: Part) => Promise<R>): Promise<R[]> {
    const { instances, partOf, logger } = this.#parts;
    const answers = await Promise.allSettled(others.map((other) => ask(partOf(other))));
    return answers.flatMap((answer, index) => {
      if (answer.status === "fulfilled") return [answer.value];
      instances.forget(others[index] ?? "");
      logger.warn(`the instance ${others[index]} does not answer: ${messageFromUnknown(answer.reason)}`);
      return [];
    });
  }
}
