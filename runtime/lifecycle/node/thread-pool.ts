import { Piscina } from "piscina";

const IDLE_MS = 30_000;

export interface ThreadPoolOptions {
  /** The module whose default export does the work. */
  readonly module: URL;
  readonly maxThreads: number;
  /** Of each thread; one that needs more ends, and its work fails with `ERR_WORKER_OUT_OF_MEMORY`. */
  readonly heapMb: number;
}

/** Threads of low priority, without the environment of their process. They start when they are needed and end when they are idle. */
export function createThreadPool<T, R>({ module, maxThreads, heapMb }: ThreadPoolOptions): Piscina<T, R> {
  return new Piscina({
    filename: module.href,
    minThreads: 0,
    maxThreads,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    niceIncrement: 10,
    env: {},
    execArgv: [],
    recordTiming: false,
  });
}
