import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTestBus, type TestBus } from "../../harness/bus.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";
import { LIMIT_BYTES } from "./storm/mix.ts";

/** A broker and a worker-pool, each a process of its own, and one file of tools. */
export interface PoolWorld extends AsyncDisposable {
  readonly bus: TestBus;
  readonly service: FaultyService;
  /** Of the file: where all of its processes are at home. */
  readonly directory: string;
  /** How the pool ended without having been asked. */
  readonly unaskedEnds: readonly string[];
}

export interface PoolWorldOptions {
  readonly tree: string;
  readonly uv: string;
  readonly tool: URL;
}

export async function openPoolWorld({ tree, uv, tool }: PoolWorldOptions): Promise<PoolWorld> {
  await using stack = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), "toolbus-faults-workers-"));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const directory = join(home, "files");
  await cp(tool, join(directory, "tool.py"));
  const bus = stack.use(await openTestBus());
  const unaskedEnds: string[] = [];
  const env = {
    ...process.env,
    NATS_URL: bus.server.url,
    TOOLBUS_BUS_CREDENTIALS: bus.server.credentials,
    TOOLBUS_WORKERS: directory,
    TOOLBUS_HOSTED: join(home, "hosted"),
    TOOLBUS_UV: uv,
    TOOLBUS_LOG_LEVEL: "warn",
    TOOLBUS_WORKER_CALLS: "16",
    TOOLBUS_WORKER_MAX_LINE_BYTES: String(LIMIT_BYTES),
    TOOLBUS_WORKER_BACKOFF: "50",
    TOOLBUS_WORKER_MAX_BACKOFF: "50",
    UV_CACHE_DIR: join(home, "cache"),
  };
  const onUnaskedEnd = (how: string) => void unaskedEnds.push(how);
  const service = openFaultyService({ tree, service: "worker-pool", instance: "worker-pool-1", env, onUnaskedEnd });
  stack.use(service);
  await service.ready();
  const owned = stack.move();
  return { bus, service, directory, unaskedEnds, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
