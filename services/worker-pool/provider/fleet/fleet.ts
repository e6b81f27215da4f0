// All instances of the pool as one, as one of them sees them: what they hold is spread over them, and any of them may be asked.

import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import { type Worker, WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import type { OtherInstances } from "#runtime/bus/ownership/instances/other-instances.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type LogFilter, type LogUpdate, openLogQueue } from "../../logs/log-hub.ts";

/** Workers that can be asked for: those of one instance, or of all. */
export interface Part {
  list(signal: AbortSignal): Promise<{ workers: Worker[]; refusedFiles: RefusedFile[] }>;
  /** Gives whether there is such a worker. */
  stop(workerId: string, force: boolean, signal: AbortSignal): Promise<boolean>;
  watchLogs(filter: LogFilter, signal: AbortSignal): AsyncIterable<LogUpdate>;
}

/** How long it counts what another instance has told of its workers. */
const VIEW_MS = 1_000;

export class Fleet implements Part {
  readonly #own: Part;
  readonly #others: OtherInstances<Part>;
  #view: { untilMs: number; workers: Promise<Worker[]> } = { untilMs: 0, workers: Promise.resolve([]) };

  constructor(own: Part, others: OtherInstances<Part>) {
    this.#own = own;
    this.#others = others;
  }

  async list(signal: AbortSignal) {
    const others = await this.#others.askAll(signal, (other) => other.list(signal));
    const all = [await this.#own.list(signal), ...others];
    const files = new Map(all.flatMap(({ refusedFiles }) => refusedFiles).map((file) => [file.file, file]));
    return { workers: all.flatMap(({ workers }) => workers), refusedFiles: [...files.values()] };
  }

  async stop(workerId: string, force: boolean, signal: AbortSignal): Promise<boolean> {
    if (await this.#own.stop(workerId, force, signal)) return true;
    const answers = await this.#others.askAll(signal, (other) => other.stop(workerId, force, signal));
    return answers.includes(true);
  }

  /** Also of instances that come later. */
  async *watchLogs(filter: LogFilter, signal: AbortSignal): AsyncGenerator<LogUpdate> {
    using ending = openEnding(signal);
    const queue = openLogQueue(ending.signal);
    const follow = async (part: Part) => {
      for await (const update of part.watchLogs(filter, ending.signal)) queue.push(update);
    };
    if (signal.aborted) return;
    void follow(this.#own).catch(() => {}); // ended by the signal
    void this.#others.follow(ending.signal, follow);
    try {
      yield* queue;
    } finally {
      ending.end();
    }
  }

  /**
   * What other instances have for a file of a source, as told a moment ago at most, or by all that are there now: workers that take
   * calls, and instances that have no worker.
   */
  async elsewhere(source: string, file: string, signal?: AbortSignal) {
    const others = await this.#others.names(signal);
    if (signal || this.#view.untilMs <= Date.now()) {
      const asked = this.#others.ask(others, (other) => other.list(AbortSignal.timeout(VIEW_MS)));
      const workers = asked.then((answers) => answers.flatMap((answer) => answer.workers));
      this.#view = { untilMs: Date.now() + VIEW_MS, workers };
    }
    const workers = (await this.#view.workers).filter((worker) => worker.source === source && worker.file === file);
    const cold = others.filter((name) => workers.every(({ instance }) => instance !== name));
    return { warm: workers.filter(({ state }) => state === WorkerState.READY), cold };
  }
}
