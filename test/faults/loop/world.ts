import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@connectrpc/connect";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { clientFor } from "../../../services/clients.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestServer, type TestServer } from "../../harness/bus.ts";
import { openNatsProxy, type Verdict } from "../../harness/proxy/nats-proxy.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";
import type { Effect } from "./history/history.ts";
import { type EffectServer, openEffectServer } from "./peers/effect-server.ts";
import { type Conversation, type ModelServer, openModelServer } from "./peers/model-server.ts";
import { classesByTool } from "./plan/script.ts";
import { callBrought, createWireEyes, type WireMoment } from "./wire.ts";

/** Who wants to know what happens to a run. */
export interface RunEyes extends Conversation {
  readonly sessionId: string;
  onWire(moment: WireMoment, service: FaultyService): Verdict | Promise<Verdict>;
  onEffect(effect: Effect): Promise<void>;
  /** A call of the run is brought to this router. */
  onCall(router: FaultyService): void;
}

/** A broker, two orchestrators, two routers, a model and the outside, with eyes on all ways between them. */
export interface World extends AsyncDisposable {
  readonly bus: Bus;
  readonly broker: TestServer;
  readonly runs: Client<typeof RunService>;
  readonly sessions: Client<typeof SessionService>;
  readonly orchestrators: readonly FaultyService[];
  readonly routers: readonly FaultyService[];
  readonly spaces: FaultyService;
  readonly inboxes: Client<typeof InboxDeliveryService>;
  /** What ended without being killed. */
  readonly unaskedEnds: readonly string[];
  /** Until it is let go, the run is watched by these eyes. */
  watch(eyes: RunEyes): Disposable;
  /** Resolves when all processes can be used. */
  healthy(): Promise<void>;
}

export const agentName = "faulty";

const stallMs = 2_500;

export async function openWorld({ tree, env = {} }: { tree: string; env?: NodeJS.ProcessEnv }): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const broker = stack.use(await openTestServer());
  const seen = createRegistry();
  const models = stack.use(await openModelServer((token) => seen.byToken.get(token)));
  const outside = stack.use(await openEffectServer((effect) => seen.ofKey(effect.key)?.onEffect(effect) ?? done));
  await writeCatalogue(directory, outside);
  const unaskedEnds: string[] = [];
  const services: FaultyService[] = [];
  const start = async (name: string, number: number) => {
    const instance = `${name}-${number}`;
    const port = Number(new URL(broker.url).port);
    const proxy = stack.use(await openNatsProxy({ port, onFrame: (frame, way) => look(frame, way) }));
    const service = stack.use(
      openFaultyService({
        tree,
        service: name,
        instance,
        env: {
          ...process.env,
          ...environmentOf({ broker, models, outside, directory, instance }),
          ...env,
          ...natsAt(proxy.port),
        },
        onUnaskedEnd: (how) => void unaskedEnds.push(how),
      }),
    );
    services.push(service);
    const wire = createWireEyes((moment) => seen.ofMoment(moment)?.onWire(moment, service) ?? "pass");
    const look: Parameters<typeof openNatsProxy>[0]["onFrame"] =
      name === "orchestrator"
        ? wire.look
        : (frame, way) => {
            seen.byRunId.get(callBrought(frame, way) ?? "")?.onCall(service);
            return "pass";
          };
    return service;
  };
  const orchestrators = [await start("orchestrator", 1), await start("orchestrator", 2)];
  const routers = [await start("tool-router", 1), await start("tool-router", 2)];
  const spaces = await start("spaces", 1);
  const healthy = async () => void (await Promise.all(services.map((service) => service.ready())));
  await healthy();
  const { url, login } = broker;
  const bus = stack.use(await openBus({ url, login, name: "faults" }));
  const owned = stack.move();
  return {
    bus,
    broker,
    runs: clientFor(bus, RunService),
    sessions: clientFor(bus, SessionService),
    orchestrators,
    routers,
    spaces,
    inboxes: clientFor(bus, InboxDeliveryService),
    unaskedEnds,
    watch: seen.watch,
    healthy,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const done = Promise.resolve();

const natsAt = (port: number): NodeJS.ProcessEnv => ({ NATS_URL: `nats://127.0.0.1:${port}` });

interface Surroundings {
  readonly broker: TestServer;
  readonly models: ModelServer;
  readonly outside: EffectServer;
  readonly directory: string;
  readonly instance: string;
}

function environmentOf({ broker, models, outside, directory, instance }: Surroundings): NodeJS.ProcessEnv {
  return {
    TOOLBUS_BUS_CREDENTIALS: broker.credentials,
    TOOLBUS_INSTANCE: instance,
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_TOOLS: join(directory, "tools"),
    TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${outside.port}`,
    TOOLBUS_LOG_LEVEL: "info",
    TOOLBUS_CHECKPOINT: "100ms", // turns are short here: their drafts are to be seen, too
    OPENAI_BASE_URL: models.urlFor(instance),
  };
}

async function writeCatalogue(directory: string, outside: EffectServer): Promise<void> {
  const write = (kind: string, name: string, content: object) =>
    writeFiles(directory, { [`${kind}/${name}.json`]: { name, ...content } });
  for (const [tool, effect] of classesByTool) {
    const execution = { url: `http://127.0.0.1:${outside.port}/${tool}` };
    await write("tools", tool, { executionType: "gateway", visible: false, effect, execution });
  }
  await write("agents", agentName, {
    model: { provider: "openai-compatible", model: "faulty-1" },
    tools: { use: [...classesByTool.keys()] },
    limits: { modelStallTimeout: stallMs, modelRetries: 20 },
  });
}

function createRegistry() {
  const byToken = new Map<string, RunEyes>();
  const bySession = new Map<string, RunEyes>();
  const byRunId = new Map<string, RunEyes>();

  function ofMoment(moment: WireMoment): RunEyes | undefined {
    if (moment.kind === "listing") {
      const request = moment.request.toString("latin1");
      return [...bySession].find(([sessionId]) => request.includes(sessionId))?.[1];
    }
    const { event, runId } = moment.event;
    const token = event.case === "accepted" ? tokenOf(event.value.input[0]?.item) : "";
    const eyes = byToken.get(token);
    if (eyes !== undefined) byRunId.set(runId, eyes);
    return byRunId.get(runId);
  }

  return {
    byToken,
    byRunId,
    ofMoment,
    ofKey: (key: string) => byToken.get(key.split("-")[0] ?? ""),
    watch(eyes: RunEyes): Disposable {
      byToken.set(eyes.token, eyes);
      bySession.set(eyes.sessionId, eyes);
      return {
        [Symbol.dispose]() {
          byToken.delete(eyes.token);
          if (bySession.get(eyes.sessionId) === eyes) bySession.delete(eyes.sessionId);
          for (const [runId, of] of byRunId) if (of === eyes) byRunId.delete(runId);
        },
      };
    },
  };
}

function tokenOf(item: Item["item"] | undefined): string {
  const text = item?.case === "message" ? textOfContent(item.value.content) : "";
  return /\[(\w+)\]/.exec(text)?.[1] ?? "";
}
