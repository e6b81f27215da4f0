import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { errors, type NatsConnection, type Status } from "@nats-io/transport-node";
import { messageFromUnknown } from "../failure/failure.ts";
import { LocalFailure } from "../failure/local-failure.ts";
import { saveOnWriters } from "../schema/protobuf-patches/scratch-writer.ts";
import { comesWithin } from "../time/comes-within.ts";
import { retryWhile } from "../time/retry/retry.ts";
import { type ConnectOptions, connectOnce } from "./credentials/connect.ts";
import type { BusLogin } from "./credentials/login.ts";
import type { StoreAccess, StoresAccess } from "./credentials/permissions.ts";
import type { ReadTrustList } from "./credentials/trust/trust-list.ts";
import type { ObjectStoreName, StoreName } from "./declarations/declarations.ts";
import { streamOf } from "./declarations/declared-config.ts";
import { ensureDeclared } from "./declarations/ensure-declared.ts";
import { type Link, linkOf } from "./link/link.ts";
import { probeSubjects } from "./link/storage.ts";
import { guardHandlers } from "./nats-patches/guarded-handlers.ts";
import { PlainHeaders } from "./nats-patches/plain-headers.ts";
import { saveOnRequests } from "./nats-patches/thrifty-requests.ts";
import { coalesceWrites } from "./nats-patches/writes/coalesced-writes.ts";
import { poolFrames } from "./nats-patches/writes/pooled-frames.ts";
import { refuseOldNatsServer } from "./nats-server/find/version.ts";
import { publishAcknowledged } from "./streams/acknowledged.ts";
import { tellingOnce, type Unreadable } from "./streams/record.ts";

/** A connection to NATS and the stores behind it. Disposing drains: what was received is handled, what was sent goes out. */
export interface Bus extends AsyncDisposable {
  readonly connection: NatsConnection;
  /** By whose key it is signed in, and what is asked over it is signed. */
  readonly login: BusLogin;
  /** Whose word for whom counts among those who ask. */
  readonly trust: ReadTrustList;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly link: Link;
  objectStore(name: ObjectStoreName): Promise<ObjectStore>;
  /** Tells of a record that is passed over: see `readRecord`. */
  tellUnreadable(record: Unreadable): void;
}

export type BusStatus =
  | { kind: "waiting"; reason: string }
  | { kind: "connected"; server: string }
  | { kind: "disconnected"; server: string }
  | { kind: "reconnected"; server: string }
  | { kind: "failed"; reason: string }
  /** JetStream stores nothing, or again. */
  | { kind: "stalled"; reason: string }
  | { kind: "stores again" }
  /** The server refused what this login may not do. */
  | { kind: "denied"; operation: "publish" | "subscription"; subject: string }
  | ({ kind: "unreadable" } & Unreadable);

export interface BusOptions extends ConnectOptions {
  /** Unless told, nobody's. */
  trust?: ReadTrustList | undefined;
  /** What is stored by or read of whom: only that is created. Everything unless told, for a login that may do everything. */
  stores?: StoresAccess | undefined;
  /** Ends the waiting for the server; a bus that is open is closed by disposing. */
  signal?: AbortSignal | undefined;
  /** Copies of each store: 1 on one machine, 3 in a cluster. Unless told, what stands is kept, and 1 is created. */
  replicas?: number | undefined;
  onStatus?: ((status: BusStatus) => void) | undefined;
}

/**
 * Waits until the server is there and has everything declared, then stays connected for as long as it is open.
 * Throws `failed_precondition` for a server that is too old or lacks JetStream, `unauthenticated` for wrong credentials.
 */
export async function openBus(options: BusOptions): Promise<Bus> {
  const { signal, onStatus } = options;
  const connection = await connectWithPatience(options);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => drain(connection));
  refuseUnfit(connection, options.url);
  coalesceWrites(connection);
  poolFrames(connection);
  saveOnRequests(connection);
  saveOnWriters();
  const link = linkOf(connection);
  void reportStatus(connection, onStatus);
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const onWait = (reason: string) => onStatus?.({ kind: "waiting", reason });
  await ensureDeclared(manager, { replicas: options.replicas, stores: changeableOf(options.stores), signal, onWait });
  const tellUnreadable = tellingOnce((record) => onStatus?.({ kind: "unreadable", ...record }));
  guardHandlers(connection, (subject, error) =>
    tellUnreadable({ subject, sequence: 0, reason: messageFromUnknown(error) }),
  );
  link.storage.onChange((fault) =>
    onStatus?.(fault === undefined ? { kind: "stores again" } : { kind: "stalled", reason: fault }),
  );
  if (options.stores === undefined || "TOOLBUS_PROBE" in options.stores)
    stack.use(watchStorage(connection, link, options.login.name));
  const opened = stack.move();
  const { login, trust = async () => new Map() } = options;
  const parts = { ...storesOf(connection), connection, login, trust, manager, link, tellUnreadable };
  return { ...parts, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

function watchStorage(connection: NatsConnection, link: Link, login: string): AsyncDisposable {
  const subject = probeSubjects.replace("*", login.replaceAll(".", "_"));
  const message = { subject, headers: new PlainHeaders(), timeoutMs: 1_000 };
  return link.storage.watch((payload) => publishAcknowledged({ connection, link }, { ...message, payload }));
}

function changeableOf(stores: StoresAccess | undefined) {
  if (stores === undefined) return undefined;
  const entries = Object.entries(stores) as [StoreName, StoreAccess][];
  return new Map(entries.map(([store, access]) => [streamOf(store), { mayChange: access === "owns" }]));
}

function storesOf(connection: NatsConnection) {
  const client = jetstream(connection);
  const objects = new Objm(client);
  return { jetstream: client, objectStore: (name: ObjectStoreName) => objects.open(name) };
}

async function connectWithPatience(options: BusOptions): Promise<NatsConnection> {
  const { signal, url, onStatus } = options;
  let lastReason: string | undefined;
  const onRetry = (error: unknown) => {
    const reason = `no NATS server at ${url}: ${messageFromUnknown(error)}`;
    if (reason !== lastReason) onStatus?.({ kind: "waiting", reason });
    lastReason = reason;
  };
  const mayComeUp = (error: unknown) => !isCredentialsRefused(error);
  const waits = { initialMs: 50, maxMs: 500, signal, onRetry };
  const connection = await retryWhile(mayComeUp, () => connectOnce(options), waits).catch((cause: unknown) => {
    if (!isCredentialsRefused(cause)) throw cause;
    const text = `the NATS server at ${url} does not know the key of ${options.login.name}: give it the users file of \`toolbus bus credentials\`, and reload it`;
    throw new LocalFailure("unauthenticated", text, { kind: "bus_credentials_refused", cause });
  });
  onStatus?.({ kind: "connected", server: connection.getServer() });
  return connection;
}

/** No patience mends that; a machine that was too busy to sign in within the server's time is another matter. */
function isCredentialsRefused(error: unknown): boolean {
  const causes = [error, error instanceof Error ? error.cause : undefined];
  return causes.some((cause) => cause instanceof errors.AuthorizationError && !/timeout/i.test(cause.message));
}

function refuseUnfit(connection: NatsConnection, url: string): void {
  const info = connection.info;
  refuseOldNatsServer(info?.version ?? "0.0.0", url);
  if (info?.jetstream === true || info?.cluster !== undefined) return; // in a cluster, another node may have it
  throw new LocalFailure("failed_precondition", `the NATS server at ${url} runs without JetStream: start it with -js`, {
    kind: "jetstream_disabled",
  });
}

async function reportStatus(connection: NatsConnection, onStatus: BusOptions["onStatus"]): Promise<void> {
  for await (const status of connection.status()) {
    const told = statusFrom(status);
    if (told !== undefined) onStatus?.(told);
  }
}

function statusFrom(status: Status): BusStatus | undefined {
  switch (status.type) {
    case "disconnect":
      return { kind: "disconnected", server: status.server };
    case "reconnect":
      return { kind: "reconnected", server: status.server };
    case "error":
      return deniedFrom(status.error) ?? { kind: "failed", reason: status.error.message };
    case "staleConnection":
      return { kind: "failed", reason: "the server does not answer pings" };
    case "slowConsumer":
      return { kind: "failed", reason: `slow consumer of ${status.sub.getSubject()}` };
    default:
      return undefined;
  }
}

function deniedFrom(error: Error): BusStatus | undefined {
  if (!(error instanceof errors.PermissionViolationError)) return undefined;
  return { kind: "denied", operation: error.operation, subject: error.subject };
}

const drainMs = 5_000;

/** A connection without a server cannot drain: it is closed, as it is when draining takes too long. */
async function drain(connection: NatsConnection): Promise<void> {
  if (connection.isClosed()) return;
  const drained = connection.drain().catch(() => connection.close()); // disconnected: nothing can go out
  await comesWithin(drainMs, drained);
  if (!connection.isClosed()) await connection.close();
}
