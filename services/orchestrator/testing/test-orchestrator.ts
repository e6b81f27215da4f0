import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import pino from "pino";
import { type Agent, AgentSchema, type LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService, type WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { textContent } from "#runtime/content/text.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { delay } from "#runtime/time/delay.ts";
import { openTestBus, type TestServer } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import type { Script } from "../model/providers/scripted/script.ts";
import { openOrchestrator } from "../service.ts";
import type { FakeRouter } from "./fakes/fake-router.ts";
import { createFakeSpaces, type FakeSpaces } from "./fakes/fake-spaces.ts";

const logger = pino({ level: process.env.TOOLBUS_TEST_LOG ?? "silent" });

/** A real bus, a router that keeps the contract, scripts, and as many orchestrators as a test opens. */
export interface World extends AsyncDisposable {
  readonly bus: Bus;
  readonly server: TestServer;
  readonly runs: Client<typeof RunService>;
  /** The directory of the scripts. */
  readonly scripts: string;
  writeScript(name: string, script: Script): Promise<void>;
  /** One more orchestrator, on a connection of its own. */
  openOrchestrator(instance: string, env?: NodeJS.ProcessEnv): Promise<AsyncDisposable>;
}

export interface WorldOptions {
  readonly router: FakeRouter;
  readonly spaces?: FakeSpaces;
  /** What else the agents have. */
  readonly agent?: Partial<Omit<Agent, "$typeName" | "name">>;
  readonly limits?: MessageInitShape<typeof LimitsSchema>;
  /** The provider of the agents' models; the model is the agent's name. */
  readonly provider?: string;
  /** Told of each request to the router by its method, but calls of tools. */
  readonly onRequest?: (method: string) => void;
}

export async function openWorld(options: WorldOptions): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openTestBus());
  const scripts = await mkdtemp(join(tmpdir(), "toolbus-scripts-"));
  stack.defer(() => rm(scripts, { recursive: true, force: true }));
  stack.use(await serveRouter(bus, options));
  stack.use(await serveSpaces(bus, options.spaces ?? createFakeSpaces()));
  const telemetry = stack.use(await openTelemetry({ service: "orchestrator", instance: "test" }));
  const orchestrators = stack.use(new AsyncDisposableStack());
  const owned = stack.move();
  return {
    bus,
    server: bus.server,
    runs: clientFor(bus, RunService),
    scripts,
    writeScript: (name, script) => writeFile(join(scripts, `${name}.json`), JSON.stringify(script)),
    async openOrchestrator(instance, env = {}) {
      const { url, credentials } = bus.server;
      const config = readConfig({
        NATS_URL: url,
        TOOLBUS_BUS_CREDENTIALS: credentials,
        TOOLBUS_SCRIPTS: scripts,
        ...env,
      });
      const own = await bus.connect({ name: instance });
      const orchestrator = await openOrchestrator(own, config, { name: "orchestrator", instance, logger, telemetry });
      let isOpen = true;
      const close = async () => {
        if (isOpen) await orchestrator[Symbol.asyncDispose]();
        isOpen = false;
      };
      orchestrators.defer(close);
      return { [Symbol.asyncDispose]: close };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function serveSpaces(bus: Bus, { routes }: FakeSpaces): Promise<AsyncDisposable> {
  return serveOnBus(bus, { service: "spaces", instance: "fake", drainTimeoutMs: 1, logger, routes });
}

/** Agents are all alike; the model's name is the agent's own. Sessions exist once they are named. */
async function serveRouter(
  bus: Bus,
  { router, limits, agent, provider = "scripted", onRequest }: WorldOptions,
): Promise<AsyncDisposable> {
  const agentBySession = new Map<string, string>();
  const sessionOf = (id: string) => {
    const agent = agentBySession.get(id) ?? id.split("-")[0] ?? id;
    return create(SessionSchema, { id, agent, contextRevision: 1, state: SessionState.ACTIVE });
  };
  let lastSession = 0;
  return serveOnBus(bus, {
    service: "tool-router",
    instance: "fake",
    drainTimeoutMs: 1, // calls of some tools never end
    logger,
    routes: (connect) => {
      connect.service(AgentService, {
        getAgent({ name }) {
          onRequest?.("GetAgent");
          const model = { provider, model: name };
          const configured = create(AgentSchema, { name, model, ...(limits && { limits }), ...agent });
          return { agent: { agent: configured, revision: 1n } };
        },
      });
      connect.service(SessionService, {
        createSession({ agent, sessionId }) {
          onRequest?.("CreateSession");
          if (agent === "missing") refuse("not_found", "there is no agent missing", { reason: "AGENT_NOT_FOUND" });
          lastSession += 1;
          const id = sessionId || `${agent}-${lastSession}`;
          agentBySession.set(id, agent);
          return { session: sessionOf(id) };
        },
        getSession({ sessionId }) {
          onRequest?.("GetSession");
          if (sessionId.startsWith("missing"))
            refuse("not_found", `there is no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
          return { session: sessionOf(sessionId) };
        },
      });
      connect.service(ToolCallService, {
        cancelToolCall: (request, { signal }) => router.cancelToolCall(request, { signal, principal: "" }),
      });
      connect.service(ToolService, {
        async listTools(request, { signal }) {
          onRequest?.("ListTools");
          const listed = await router.listTools(request, { signal, principal: "" });
          const { scope } = request;
          const place = scope.case === "session" ? scope.value.sessionId : (scope.value ?? "");
          return { ...listed, agent: sessionOf(place).agent };
        },
        callTool: (request, { signal }) => router.callTool(request, { signal, principal: "" }),
      });
    },
  });
}

export function userItem(text: string) {
  return { item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } };
}

export interface FollowOptions {
  readonly fromSequence?: number;
  readonly includeDeltas?: boolean;
}

/** The updates of a run up to its end. A stream that is lost with its server is resumed where it stood, on any replica. */
export async function* followRun(
  runs: Client<typeof RunService>,
  runId: string,
  { fromSequence = 0, includeDeltas = false }: FollowOptions = {},
): AsyncGenerator<WatchRunResponse["update"]> {
  let next = fromSequence;
  let afterDelta: { turn: number; attempt: number; index: number } | undefined;
  for (;;) {
    try {
      const request = { runId, fromSequence: BigInt(next), includeDeltas, ...(afterDelta && { afterDelta }) };
      for await (const { update } of runs.watchRun(request)) {
        if (update.case === "event") next = update.value.sequence + 1;
        if (update.case === "delta") {
          const { turn, attempt, index } = update.value;
          afterDelta = { turn, attempt, index };
        }
        yield update;
      }
      return;
    } catch (error) {
      if (!(error instanceof ConnectError && error.code === Code.Unavailable)) throw error;
      await delay(20); // a bus that is closed fails at once, and for good
    }
  }
}

/** All updates of a run. */
export async function follow(
  runs: Client<typeof RunService>,
  runId: string,
  options: FollowOptions = {},
): Promise<WatchRunResponse["update"][]> {
  return Array.fromAsync(followRun(runs, runId, options));
}
