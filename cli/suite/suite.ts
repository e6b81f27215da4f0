// The suite on one machine: a NATS server, and the services in one process or in a process each.
//
// The server opens first and closes last; the services' programs are loaded meanwhile. Services start side by side and in no order, as
// each waits for what it needs.

import { statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { readLogin, type UsersOf, writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { isErrno } from "#runtime/failure/errno.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { invocation } from "../faults/invocation.ts";
import { projectDirectory } from "../project/project.ts";
import { protectStart } from "../project/protected.ts";
import { readBusUsers } from "./bus-users/bus-users.ts";
import { environmentOfServices, hasCredentials, type SuitePlaces } from "./environment.ts";
import { announceSuite, openKey, type SuiteKey, suiteIn, writePrivate } from "./keys/key.ts";
import { openLogFiles } from "./log-files.ts";
import { openKeptNats } from "./nats.ts";
import { ignoredVariables, listServices } from "./service-names.ts";
import { Services, type SuiteService } from "./services.ts";
import type { ServiceEvent } from "./services-process.ts";

export interface SuiteOptions {
  /** Deletes what was stored, before anything is started. */
  reset?: boolean | undefined;
  /** Holds what the suite keeps: the store of NATS, logs, caches. */
  directory: string;
  /** Port of the gateway; 0 takes a free one. */
  port: number;
  /** A NATS server that runs already, and knows the keys of TOOLBUS_BUS_CREDENTIALS. Absent: one is started. */
  natsUrl?: string | undefined;
  /** Services to start; absent means all. */
  services?: readonly string[] | undefined;
  /** Gives each service a process of its own, so that it can die and be started again alone. */
  isolate?: boolean | undefined;
  /** Whether the gateway wants a key, and one is made where none is configured; it does unless told. */
  auth?: "key" | "none" | undefined;
  /** Further variables for every service. */
  env?: NodeJS.ProcessEnv;
  /** Starts a service again that ended unasked; true unless told. */
  restart?: boolean;
  /** Path of another copy of the program that runs the services. */
  program?: string;
  /** Who may sign in to NATS, for who has the contract at hand; unless told, another process reads it. */
  users?: UsersOf;
  /** `always`: what was acknowledged survives power loss; `default`: it survives the end of any process. */
  syncInterval?: "default" | "always";
  /** Gives the start up, and ends what was started; a suite that is open is closed by disposing. */
  signal?: AbortSignal;
  onEvent?: (event: ServiceEvent) => void;
  onProgress?: (message: string) => void;
}

export interface Suite extends AsyncDisposable {
  /** Where the gateway listens; empty if it is not among the services. */
  readonly url: string;
  /** The key that was made for this directory; absent where keys are configured, or none is wanted. */
  readonly key?: SuiteKey;
  readonly apiKey?: string;
  /** Its `pid` if it was started here. */
  readonly nats: { readonly url: string; readonly pid?: number };
  /** The directory of the keys of all who may sign in to it. */
  readonly credentials: string;
  readonly services: readonly SuiteService[];
  /** Starts one more instance of a service, in a process of its own, and waits until it is ready. */
  start(service: string): Promise<SuiteService>;
}

/** Starts everything and waits until it is ready. Throws `unavailable` with the last lines of a service that is not. */
export async function openSuite(options: SuiteOptions): Promise<Suite> {
  const directory = resolve(options.directory);
  try {
    return await openSuiteIn(directory, options);
  } catch (cause) {
    if (!isOfDirectory(directory, cause)) throw cause;
    const text = `the suite cannot keep its state in ${directory}: ${messageFromUnknown(cause)}\n--directory names another one.`;
    throw new LocalFailure("failed_precondition", text, { kind: "directory_unusable", cause });
  }
}

/** A full disk, a file in a folder's place, another user's folder: as far as the system names the file, and it is one of the directory. */
export function isOfDirectory(directory: string, error: unknown): boolean {
  if (!(error instanceof Error && "syscall" in error && "path" in error) || isErrno(error, "EMFILE")) return false;
  return error.path === directory || String(error.path).startsWith(directory + sep);
}

async function openSuiteIn(directory: string, options: SuiteOptions): Promise<Suite> {
  await using stack = new AsyncDisposableStack();
  refuseSecond(directory);
  const logs = stack.use(openLogFiles(join(directory, "logs")));
  const ignored = join(directory, ".gitignore"); // it holds keys, and a folder may be added to a repository whole
  if (!statSync(ignored, { throwIfNoEntry: false })?.size) writePrivate(ignored, "*");
  const keys = options.env?.TOOLBUS_BUS_CREDENTIALS ?? process.env.TOOLBUS_BUS_CREDENTIALS;
  const credentials = keys === undefined ? join(directory, "bus") : resolve(keys);
  const env = environmentOfServices(options, { directory, credentials });
  protectStart({ project: projectDirectory(), directory, env }, (message) => options.onProgress?.(message));
  const announced = stack.use(announceSuite(directory, options.signal));
  const names = options.services ?? listServices();
  const key = hasCredentials(env) || !names.includes("gateway") ? undefined : openKey(directory);
  const server = stack.use(new AsyncDisposableStack());
  const opening = openNats(options, { directory, credentials }, server);
  const services = stack.use(
    new Services({
      port: options.port,
      env: { ...env, ...(key && { TOOLBUS_LOCAL_KEY: key.key }) },
      natsUrl: opening.then(({ url }) => url),
      restart: options.restart ?? true,
      program: options.program,
      onEvent(event) {
        if (event.kind === "line") logs.write(event.service, event.line);
        options.onEvent?.(event);
      },
    }),
  );
  options.onProgress?.(`starting ${names.length} services`);
  const groups = options.isolate ? names.map((name) => [name]) : inOneProcess(names);
  const launched = Promise.all(groups.map((group) => services.launch(group)));
  launched.catch(() => {}); // without a server, that is what is told
  const nats = await opening;
  for (const line of await ignoredVariables(env)) options.onProgress?.(line);
  await unlessAborted(launched, options.signal);
  const url = names.includes("gateway") ? await services.gatewayUrl : "";
  stack.use(announced.isUp(url));
  const owned = stack.move();

  return {
    url,
    ...(key && { key, apiKey: key.key }),
    nats,
    credentials,
    services: services.all,
    async start(name) {
      const [service] = await services.launch([name]);
      return service as SuiteService;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The server, with what it has stored as far as that is to stay. */
async function openNats(
  options: SuiteOptions,
  places: SuitePlaces,
  stack: AsyncDisposableStack,
): Promise<Suite["nats"]> {
  const nats = await findOrStartNats(options, places, stack);
  if (options.reset) {
    const { removeStores } = await import("#runtime/bus/credentials/remove-stores.ts");
    const removed = await removeStores({ url: nats.url, login: await readLogin(places.credentials, ADMIN) });
    options.onProgress?.(`deleted what was stored: ${removed.length} streams and buckets`);
  }
  return nats;
}

async function findOrStartNats(
  options: SuiteOptions,
  { directory, credentials }: SuitePlaces,
  stack: AsyncDisposableStack,
): Promise<Suite["nats"]> {
  const { users = readBusUsers } = options;
  if (options.natsUrl) {
    const isGiven = credentials !== join(directory, "bus");
    if (!isGiven) await writeCredentials(credentials, users); // for a server that asks for no keys
    return { url: options.natsUrl };
  }
  options.onProgress?.("starting nats-server");
  return stack.use(
    await openKeptNats({
      directory: join(directory, "nats"),
      credentials,
      users,
      binary: process.env.TOOLBUS_NATS_SERVER || undefined,
      find: { signal: options.signal },
      syncInterval: options.syncInterval ?? "default",
      onEnded: (how) =>
        options.onEvent?.({ kind: "ended", service: "nats-server", instance: "nats-server", how, asked: false }),
    }),
  );
}

/** One process for all; a second instance of a service has one of its own. */
function inOneProcess(services: readonly string[]): string[][] {
  const seconds = services.filter((service, index) => services.indexOf(service) < index);
  return [[...new Set(services)], ...seconds.map((service) => [service])];
}

/** What a directory keeps is one suite's at a time. */
function refuseSecond(directory: string): void {
  const running = suiteIn(directory);
  if (running === undefined || running.pid === process.pid) return;
  const { url, state, pid } = running;
  const told = state === "up" ? `up${url && ` at ${url}`} already` : state;
  const text = `the suite of ${directory} is ${told}, started by process ${pid}: "${invocation} down" stops it, --directory starts another one`;
  throw new LocalFailure("failed_precondition", text, { kind: "suite_is_up" });
}
