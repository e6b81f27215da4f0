import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream";
import { Failure, messageFromUnknown } from "../failure/failure.ts";
import { LocalFailure } from "../failure/local-failure.ts";
import { createBackoff } from "../time/backoff.ts";
import { delay } from "../time/delay.ts";
import { configsFromDeclarations, type DeclaredConfig } from "./declared-config.ts";

export interface EnsureDeclaredOptions {
  /** Copies of each store: 1 on one machine, 3 in a cluster. Unless told, what stands is kept, and 1 is created. */
  replicas?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Told what is waited for, once a second or less often. */
  onWait?: ((reason: string) => void) | undefined;
}

/** The server's codes for a change that will be refused however often it is asked for. */
const errorCodes = { streamNotFound: 10059, nameInUse: 10058, noResourcesForStorage: 10047 };

/**
 * Creates what is missing and updates what differs. Any number of processes may do this at once: they all declare the
 * same, so whoever comes second finds it done. While the server is not ready it waits; a change that cannot be applied
 * is `failed_precondition`.
 */
export async function ensureDeclared(manager: JetStreamManager, options: EnsureDeclaredOptions = {}): Promise<void> {
  const existing = await whenReady(() => existingConfigs(manager), options);
  const wanted = configsFromDeclarations(options.replicas ?? 1);
  await Promise.all(wanted.map((config) => whenReady(() => ensureOne(manager, config, existing, options), options)));
}

async function existingConfigs(manager: JetStreamManager): Promise<Map<string, StreamConfig>> {
  const configs = new Map<string, StreamConfig>();
  for await (const info of manager.streams.list()) configs.set(info.config.name, info.config);
  return configs;
}

async function ensureOne(
  manager: JetStreamManager,
  declared: DeclaredConfig,
  existing: Map<string, StreamConfig>,
  options: EnsureDeclaredOptions,
): Promise<void> {
  const found = existing.get(declared.name) ?? (await createOrFind(manager, declared));
  if (found === undefined) return;
  const wanted = options.replicas === undefined ? { ...declared, num_replicas: found.num_replicas } : declared;
  const differing = differences(found, wanted);
  if (differing.length === 0) return;
  try {
    await manager.streams.update(declared.name, { ...found, ...wanted });
  } catch (error) {
    throw failureFromRefusal(declared.name, `cannot change ${differing.join(", ")}`, error);
  }
}

/** Gives the settings of one that somebody else created meanwhile, nothing when it was created as declared. */
async function createOrFind(manager: JetStreamManager, declared: DeclaredConfig): Promise<StreamConfig | undefined> {
  try {
    await manager.streams.add(declared);
    return undefined;
  } catch (error) {
    if (isApiError(error, errorCodes.nameInUse)) return (await manager.streams.info(declared.name)).config;
    throw failureFromRefusal(declared.name, "cannot be created", error);
  }
}

/** The members of the declaration that the server holds another value for. */
export function differences(found: Partial<StreamConfig>, declared: DeclaredConfig): string[] {
  const held = found as Record<string, unknown>;
  return Object.entries(declared)
    .filter(([name, value]) => JSON.stringify(held[name] ?? absentValue(value)) !== JSON.stringify(value))
    .map(([name]) => name);
}

/** The server leaves out what is false or zero. */
function absentValue(value: unknown): unknown {
  return typeof value === "boolean" ? false : typeof value === "number" ? 0 : undefined;
}

/** Refusals become failures that say what to do; what may pass by itself stays as it is. */
function failureFromRefusal(name: string, what: string, error: unknown): unknown {
  if (!(error instanceof JetStreamApiError) || error.status >= 503) return error;
  const isFull = error.code === errorCodes.noResourcesForStorage;
  const advice = isFull
    ? "Give the server's JetStream more storage (max_file_store)."
    : "Somebody else has declared it otherwise: change or remove it by hand, or use another server.";
  return new LocalFailure("failed_precondition", `the store ${name} ${what}: ${error.message}. ${advice}`, {
    kind: "declaration_refused",
    metadata: { store: name },
    cause: error,
  });
}

/** Repeats what failed because the server, or its cluster, is still starting. */
async function whenReady<T>(action: () => Promise<T>, options: EnsureDeclaredOptions): Promise<T> {
  const backoff = createBackoff({ initialMs: 50, maxMs: 1_000 });
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await action();
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (error instanceof JetStreamApiError && error.status < 503 && error.code !== errorCodes.streamNotFound)
        throw error;
      options.onWait?.(`JetStream is not ready: ${messageFromUnknown(error)}`);
      await delay(backoff.next(), options.signal);
    }
  }
}

function isApiError(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
