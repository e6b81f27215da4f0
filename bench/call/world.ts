import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { toBinary } from "@bufbuild/protobuf";
import { AgentService, ListAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { until } from "#runtime/time/until.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { busUsers } from "../../services/bus-users.ts";
import { clientFor } from "../../services/clients.ts";
import { programOf } from "../../test/harness/programs.ts";
import { cpuMicrosecondsOf } from "../loop/figures/cpu.ts";
import type { Latencies } from "../measuring/latencies.ts";
import { openPeer } from "../measuring/peer.ts";
import { AGENT, type CallerArguments, INTERNAL_TOOL, MCP_SERVER, type Order, SESSION } from "./setting.ts";

/** The services that a call goes through, each a process, and beside them the caller and what it is compared with. */
export interface CallWorld extends AsyncDisposable {
  measure(order: Order): Promise<Latencies>;
  /** What all processes that a call goes through have used of the processors so far: the caller and the MCP server, too. */
  cpuUs(): number;
}

const program = programOf("cli/suite/services-program");
const services = ["gateway", "tool-router", "mcp-bridge", "spaces"];
const server = [process.execPath, fileURLToPath(new URL("mcp-server.ts", import.meta.url))];

export async function openCallWorld(): Promise<CallWorld> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "bench-call-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const nats = await openNatsServer({ directory: join(directory, "nats"), users: busUsers });
  const { url, login: admin, credentials, pid } = stack.use(nats);
  const login = { url, login: admin };
  const env = {
    ...(await writeConfiguration(directory)),
    TOOLBUS_LOG_LEVEL: "warn",
    TOOLBUS_CONFINEMENT: "off", // else the MCP server knows its number in a namespace of its own only, and its processor is not counted
    NATS_URL: url,
    TOOLBUS_BUS_CREDENTIALS: credentials,
  };
  const suite = stack.use(
    await openSuite({ directory, program, port: 0, natsUrl: url, isolate: true, services, env, auth: "none" }),
  );
  const bus = stack.use(await openBus({ ...login, name: "bench" }));
  const sessions = clientFor(bus, SessionService);
  await until(() => sessions.createSession({ agent: AGENT, sessionId: SESSION }).catch(() => undefined)); // its file is being read
  const listed = await clientFor(bus, AgentService).listAgents({});
  const agents = Buffer.from(toBinary(ListAgentsResponseSchema, listed)).toString("base64");
  const baseline = await openPeer(stack, new URL("baseline.ts", import.meta.url), { argument: { login, agents } });
  const argument: CallerArguments = { login, server, gatewayUrl: suite.url, baselineUrl: `${baseline.hello.url}` };
  const caller = await openPeer<Latencies>(stack, new URL("caller.ts", import.meta.url), { argument });
  const owned = stack.move();
  const pids = () => [pid, caller.child.pid, Number(caller.hello.serverPid), ...suite.services.map((one) => one.pid)];
  return {
    measure: (order) => caller.ask(order),
    cpuUs: () => pids().reduce<number>((sum, one) => sum + cpuMicrosecondsOf(one ?? 0), 0),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** One agent with an internal tool and those of one MCP server. */
async function writeConfiguration(directory: string): Promise<NodeJS.ProcessEnv> {
  const [agents, tools] = [join(directory, "agents"), join(directory, "tools")];
  await Promise.all([agents, tools].map((path) => mkdir(path, { recursive: true })));
  const [command, ...args] = server;
  const agent = {
    name: AGENT,
    tools: { use: [INTERNAL_TOOL, `@${MCP_SERVER}/*`] },
    mcp: { servers: [{ name: MCP_SERVER, transport: "stdio", command, args }] },
  };
  await writeFile(join(agents, `${AGENT}.json`), JSON.stringify(agent));
  await writeFile(
    join(tools, `${INTERNAL_TOOL}.json`),
    JSON.stringify({ name: INTERNAL_TOOL, executionType: "internal" }),
  );
  return { TOOLBUS_AGENTS: agents, TOOLBUS_TOOLS: tools };
}
