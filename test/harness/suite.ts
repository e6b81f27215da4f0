import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Connection, openConnection } from "../../cli/connection.ts";
import { openSuite, type Suite, type SuiteOptions } from "../../cli/suite/suite.ts";
import { type Bus, openBus } from "../../runtime/bus/bus.ts";
import { readLogin } from "../../runtime/bus/credentials/directory.ts";
import { ADMIN } from "../../runtime/bus/credentials/login.ts";
import { followTrustList } from "../../runtime/bus/credentials/trust/trust-list.ts";
import { busUsers } from "../../services/bus-users.ts";
import { keepDirectoryOf } from "./commands/command.ts";
import { programOf } from "./programs.ts";
import { refuseViolations } from "./violations.ts";

export interface TestSuite extends Suite {
  /** Through the gateway: one for the whole suite. */
  readonly connection: Connection;
  readonly directory: string;
  /** Ends the suite, as disposing does, and leaves its directory. */
  stop(): Promise<void>;
  /** A connection of the test's own to the bus. */
  openBus(): Promise<Bus>;
}

export interface TestSuiteOptions extends Partial<SuiteOptions> {
  /** A tarball of what another suite has left in its directory. */
  left?: string;
  /** Somebody tries with a service's own key what it may not, which is a fault of the service elsewhere. */
  strangers?: boolean;
}

const program = programOf("cli/suite/services-program");

/** The suite as real processes, with a store of its own in a temporary directory, which goes with it. */
export async function openTestSuite({
  strangers = false,
  left,
  ...options
}: TestSuiteOptions = {}): Promise<TestSuite> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test,suite-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  if (left !== undefined) await promisify(execFile)("tar", ["-xzf", left, "-C", directory]);
  if (options.natsUrl === undefined && !strangers) {
    stack.defer(() => refuseViolations(join(directory, "nats", "nats-server.log"), join(directory, "bus")));
  }
  const suite = stack.use(await openSuite({ directory, port: 0, program, users: busUsers, ...options }));
  const busses = stack.use(new AsyncDisposableStack());
  const connection = openConnection(suite);
  keepDirectoryOf(suite.url, directory);
  const owned = stack.move();
  return {
    url: suite.url,
    ...(suite.key && { key: suite.key, apiKey: suite.key.key }),
    nats: suite.nats,
    credentials: suite.credentials,
    services: suite.services,
    start: (service) => suite.start(service),
    connection,
    directory,
    stop: async () => {
      await busses.disposeAsync();
      await suite[Symbol.asyncDispose]();
    },
    openBus: async () => {
      const login = await readLogin(suite.credentials, ADMIN);
      const trust = await followTrustList(suite.credentials);
      return busses.use(await openBus({ url: suite.nats.url, login, trust, name: "test" }));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
