import { JetStreamApiError, type JetStreamManager, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";
import { Failure, messageFromUnknown } from "../../failure/failure.ts";
import { LocalFailure } from "../../failure/local-failure.ts";
import { retryWhile } from "../../time/retry/retry.ts";
import { formatKey, storeFormat } from "./declarations.ts";
import { configsFromDeclarations, type DeclaredConfig } from "./declared-config.ts";

export interface EnsureDeclaredOptions {
  /** Copies of each store: 1 on one machine, 3 in a cluster. Unless told, what stands is kept, and 1 is created. */
  replicas?: number | undefined;
  /** Which of the suite's streams (buckets and object stores are streams, too), and which of them may be changed. All unless told. */
  stores?: ReadonlyMap<string, { readonly mayChange: boolean }> | undefined;
  signal?: AbortSignal | undefined;
  /** Told what is waited for, once a second or less often. */
  onWait?: ((reason: string) => void) | undefined;
}

const errorCodes = { streamNotFound: 10059, nameInUse: 10058 };

/** By the server's codes for a change that will be refused however often it is asked for. */
const ADVICE: Record<number, string> = {
  10047: "Give the server's JetStream more storage (max_file_store).",
  10049: "Its files could not be made: often the disk is full, and the log of nats-server says so.",
};

/**
 * Creates what is missing and updates what differs. Any number of processes may do this at once: they all declare the
 * same, so whoever comes second finds it done. While the server is not ready it waits; a change that cannot be applied
 * is `failed_precondition`.
 */
export async function ensureDeclared(manager: JetStreamManager, options: EnsureDeclaredOptions = {}): Promise<void> {
  const { stores } = options;
  const wanted = configsFromDeclarations(options.replicas ?? 1).filter(({ name }) => stores?.has(name) ?? true);
  const existing = await whenReady(() => existingStores(manager, wanted), options);
  refuseOtherFormats([...existing.values()]);
  await Promise.all(wanted.map((config) => whenReady(() => ensureOne(manager, config, existing, options), options)));
}

async function existingStores(
  manager: JetStreamManager,
  wanted: readonly DeclaredConfig[],
): Promise<Map<string, StreamInfo>> {
  const found = await Promise.all(wanted.map(({ name }) => manager.streams.info(name).catch(unlessMissing)));
  return new Map(found.flatMap((info) => (info === undefined ? [] : [[info.config.name, info]])));
}

function unlessMissing(error: unknown): undefined {
  if (!isApiError(error, errorCodes.streamNotFound)) throw error;
}

async function ensureOne(
  manager: JetStreamManager,
  declared: DeclaredConfig,
  existing: ReadonlyMap<string, StreamInfo>,
  options: EnsureDeclaredOptions,
): Promise<void> {
  const found = existing.get(declared.name)?.config ?? (await createOrFind(manager, declared));
  const mayChange = options.stores?.get(declared.name)?.mayChange ?? true;
  if (found !== undefined && mayChange) await updateIfDiffering(manager, declared, found, options);
  // A cluster's nodes hear of a new store one after the other: until its own leader answers, it may still be "not found".
  if ((options.replicas ?? 1) > 1) await manager.streams.info(declared.name);
}

async function updateIfDiffering(
  manager: JetStreamManager,
  declared: DeclaredConfig,
  found: StreamConfig,
  options: EnsureDeclaredOptions,
): Promise<void> {
  const replicas = options.replicas === undefined ? { num_replicas: found.num_replicas } : {};
  const wanted = { ...declared, ...replicas, metadata: { ...found.metadata, ...declared.metadata } };
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
    if (isApiError(error, errorCodes.nameInUse)) {
      const info = await manager.streams.info(declared.name);
      refuseOtherFormats([info]);
      return info.config;
    }
    throw failureFromRefusal(declared.name, "cannot be created", error);
  }
}

/** The members of the declaration that the server holds another value for. */
export function differences(found: Partial<StreamConfig>, declared: DeclaredConfig): string[] {
  const { metadata: marks, ...held } = found as Partial<StreamConfig> & Record<string, unknown>;
  const { metadata = {}, ...settings } = declared;
  const differing = Object.entries(settings)
    .filter(([name, value]) => JSON.stringify(held[name] ?? absentValue(value)) !== JSON.stringify(value))
    .map(([name]) => name);
  const isMarked = Object.entries(metadata).every(([name, value]) => marks?.[name] === value); // the server adds marks of its own
  return isMarked ? differing : [...differing, "metadata"];
}

/** What holds nothing is of any format. */
function refuseOtherFormats(stores: readonly StreamInfo[]): void {
  for (const { config, state } of stores) {
    const format = Number(config.metadata?.[formatKey] ?? 1);
    if (format === storeFormat || state.messages === 0) continue;
    const advice =
      format < storeFormat
        ? "It is not read, since it would be read wrongly. `toolbus up --reset` deletes all that is stored and begins anew; " +
          "another directory (`--directory`), or another NATS server, leaves it as it is."
        : "A newer release has written it: start that release again.";
    const what = `the store ${config.name} has format ${format}, and this release reads format ${storeFormat}. ${advice}`;
    const metadata = { store: config.name, format: String(format), expected: String(storeFormat) };
    throw new LocalFailure("failed_precondition", what, { kind: "store_format", metadata });
  }
}

/** The server leaves out what is false or zero. */
function absentValue(value: unknown): unknown {
  return typeof value === "boolean" ? false : typeof value === "number" ? 0 : undefined;
}

/** Refusals become failures that say what to do; what may pass by itself stays as it is. */
function failureFromRefusal(name: string, what: string, error: unknown): unknown {
  if (!(error instanceof JetStreamApiError) || error.status >= 503) return error;
  const otherwise = "Somebody else has declared it otherwise: change or remove it by hand, or use another server.";
  const text = `the store ${name} ${what}: ${error.message}. ${ADVICE[error.code] ?? otherwise}`;
  const told = { kind: "declaration_refused", metadata: { store: name }, cause: error };
  return new LocalFailure("failed_precondition", text, told);
}

/** Repeats what failed because the server, or its cluster, is still starting. */
async function whenReady<T>(action: () => Promise<T>, options: EnsureDeclaredOptions): Promise<T> {
  const onRetry = (error: unknown) => options.onWait?.(`JetStream is not ready: ${messageFromUnknown(error)}`);
  return retryWhile(isStarting, action, { initialMs: 50, maxMs: 1_000, signal: options.signal, onRetry });
}

function isStarting(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.status >= 503 || error.code === errorCodes.streamNotFound;
  return !(error instanceof Failure);
}

function isApiError(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
