import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { Role, type Run } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { textContent } from "#runtime/content/text.ts";
import { openSuite, type Suite } from "../../cli/suite/suite.ts";
import { busUsers } from "../../services/bus-users.ts";
import { clientFor } from "../../services/clients.ts";
import { programOf } from "../../test/harness/programs.ts";
import type { Plan, Sample } from "./plan.ts";

/** A real nats-server and real services in processes of their own; the orchestrators with the planned model. */
export interface World extends AsyncDisposable {
  readonly bus: Bus;
  readonly runs: Client<typeof RunService>;
  readonly server: { readonly pid: number; kill(): Promise<void>; restart(): Promise<void> };
  readonly suite: Suite;
  readonly orchestrators: readonly Orchestrator[];
  openOrchestrator(): Promise<Orchestrator>;
}

export interface Orchestrator {
  readonly instance: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** What the model saw of a run; told once. */
  samples(planId: string): Promise<Sample[]>;
}

export interface WorldOptions {
  /** Services besides the orchestrator. */
  readonly services: readonly string[];
  readonly orchestrators?: number;
  /** Further variables for every service. */
  readonly env?: NodeJS.ProcessEnv;
  /** Arguments of Node for the orchestrators. */
  readonly nodeArguments?: readonly string[];
}

const program = programOf("cli/suite/services-program");
export const loopServices = ["tool-router", "spaces", "caller-relay"];

export async function openWorld(options: WorldOptions): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "bench-loop-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const store = join(directory, "nats");
  let nats = await openNatsServer({ directory: store, users: busUsers });
  stack.defer(() => nats[Symbol.asyncDispose]());
  const { url, login, credentials, port } = nats;
  const env: NodeJS.ProcessEnv = {
    TOOLBUS_LOG_LEVEL: "warn",
    ...(await writeConfiguration(directory)),
    ...options.env,
    NATS_URL: url,
    TOOLBUS_BUS_CREDENTIALS: credentials,
  };
  const suite = stack.use(
    await openSuite({ directory, program, port: 0, natsUrl: url, isolate: true, services: options.services, env }),
  );
  const orchestrators: Orchestrator[] = [];
  const opened = stack.use(new AsyncDisposableStack());
  const openOne = async () => {
    const instance = `orchestrator-${orchestrators.length + 1}`;
    const one = await openOrchestrator(opened, instance, { ...process.env, ...env }, options.nodeArguments ?? []);
    orchestrators.push(one);
    return one;
  };
  for (let count = 0; count < (options.orchestrators ?? 1); count += 1) await openOne();
  const bus = stack.use(await openBus({ url, login, name: "bench" }));
  const owned = stack.move();
  return {
    bus,
    suite,
    orchestrators,
    runs: clientFor(bus, RunService),
    openOrchestrator: openOne,
    server: {
      get pid() {
        return nats.pid;
      },
      async kill() {
        process.kill(nats.pid, "SIGKILL");
        await nats.exited;
      },
      async restart() {
        await nats[Symbol.asyncDispose]();
        nats = await openNatsServer({ directory: store, port, users: busUsers });
      },
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** One agent, whose tools need no provider: what they cost is what the loop and the router cost. */
async function writeConfiguration(directory: string): Promise<NodeJS.ProcessEnv> {
  const agents = join(directory, "agents");
  const tools = join(directory, "tools");
  await Promise.all([agents, tools].map((path) => mkdir(path, { recursive: true })));
  const agent = {
    name: "bench",
    description: "Does as planned",
    model: { provider: "planned", model: "planned" },
    tools: { use: ["repeat"] },
    limits: { maxTurns: 100_000 },
  };
  const repeat = {
    name: "repeat",
    description: "Gives its arguments back",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    executionType: "internal",
  };
  await writeFile(join(agents, "bench.json"), JSON.stringify(agent));
  await writeFile(join(tools, "repeat.json"), JSON.stringify(repeat));
  return { TOOLBUS_AGENTS: agents, TOOLBUS_TOOLS: tools };
}

async function openOrchestrator(
  stack: AsyncDisposableStack,
  instance: string,
  env: NodeJS.ProcessEnv,
  execArgv: readonly string[],
): Promise<Orchestrator> {
  const path = fileURLToPath(new URL("orchestrator.ts", import.meta.url));
  const child = fork(path, { env: { ...env, TOOLBUS_INSTANCE: instance }, execArgv: [...execArgv] });
  stack.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  });
  const answers = new Map<string, (samples: Sample[]) => void>();
  const ready = Promise.withResolvers<void>();
  child.once("exit", (code) => ready.reject(new Error(`the orchestrator ended with ${code}`)));
  child.on("message", (message: { kind: string; id: string; samples: Sample[] }) => {
    if (message.kind === "ready") ready.resolve();
    if (message.kind === "samples") answers.get(message.id)?.(message.samples);
  });
  await ready.promise;
  return {
    instance,
    pid: child.pid ?? 0,
    child,
    samples: (id) =>
      new Promise((resolve) => {
        answers.set(id, resolve);
        child.send({ kind: "samples", id });
      }),
  };
}

/** Starts a run of the plan, in a session of its own unless told. */
export async function startRun(world: Pick<World, "runs">, plan: Plan, more: object = {}): Promise<Run> {
  const message = { role: Role.USER, content: textContent(JSON.stringify(plan)) };
  const input = [create(InputItemSchema, { item: { case: "message", value: message } })];
  const { run } = await world.runs.createRun({ agent: "bench", input, ...more });
  if (run === undefined) throw new Error("a run was created and not told");
  return run;
}

/** Follows a run to its end; gives how many deltas came. */
export async function followToEnd(world: Pick<World, "runs">, runId: string, includeDeltas: boolean): Promise<number> {
  let deltas = 0;
  for await (const { update } of world.runs.watchRun({ runId, fromSequence: 0n, includeDeltas })) {
    if (update.case === "delta") deltas += 1;
  }
  return deltas;
}
