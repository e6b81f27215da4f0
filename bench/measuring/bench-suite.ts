import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { busUsers } from "../../services/bus-users.ts";
import { programOf } from "../../test/harness/programs.ts";

export interface Login {
  readonly url: string;
  readonly login: BusLogin;
}

export interface BenchSuite {
  /** Its files, deleted with the stack. */
  readonly directory: string;
  readonly gatewayUrl: string;
  readonly login: Login;
  readonly bus: Bus;
}

type AgentFile = { readonly name: string } & Record<string, unknown>;

export interface BenchSuiteOptions {
  readonly services: readonly string[];
  /** As its file says. */
  readonly agent: AgentFile;
  /** Further ones. */
  readonly others?: readonly AgentFile[];
  /** Further settings, for which the files may be written first. */
  readonly settings?: (directory: string) => Promise<NodeJS.ProcessEnv>;
}

const program = programOf("cli/suite/services-program");

/** A nats-server and the services, each a process of its own, with its agents. */
export async function openBenchSuite(stack: AsyncDisposableStack, options: BenchSuiteOptions): Promise<BenchSuite> {
  const directory = await mkdtemp(join(tmpdir(), "bench-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const nats = stack.use(await openNatsServer({ directory: join(directory, "nats"), users: busUsers }));
  const agents = join(directory, "agents");
  await mkdir(agents);
  for (const agent of [options.agent, ...(options.others ?? [])])
    await writeFile(join(agents, `${agent.name}.json`), JSON.stringify(agent));
  const env = {
    ...(await options.settings?.(directory)),
    TOOLBUS_AGENTS: agents,
    TOOLBUS_LOG_LEVEL: "warn",
    NATS_URL: nats.url,
    TOOLBUS_BUS_CREDENTIALS: nats.credentials,
  };
  const services = [...options.services];
  const suite = stack.use(
    await openSuite({ directory, program, port: 0, natsUrl: nats.url, isolate: true, services, env, auth: "none" }),
  );
  const login = { url: nats.url, login: nats.login };
  return { directory, gatewayUrl: suite.url, login, bus: stack.use(await openBus({ ...login, name: "bench" })) };
}
