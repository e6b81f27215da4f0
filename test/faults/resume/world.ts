// A gateway and two orchestrators as processes, each behind a link of its own that can fall silent, and a model that speaks slowly.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../examples/free-port.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestServer } from "../../harness/bus.ts";
import { openNatsProxy } from "../../harness/proxy/nats-proxy.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";

export interface Linked {
  readonly service: FaultyService;
  /** Nothing passes in either direction until the promise resolves. */
  cut(until: Promise<unknown>): void;
}

export interface World extends AsyncDisposable {
  readonly url: string;
  readonly gateway: Linked;
  readonly orchestrators: readonly Linked[];
}

export const agentName = "narrator";

/** So many words a turn, one a delta. */
const wordsPerTurn = 100;
const text = Array.from({ length: wordsPerTurn }, (_, index) => `word${index}`).join(" ");
const turns = [
  { text, deltaDelayMs: 30, calls: [{ name: "note", arguments: { words: text } }] },
  { reasoning: text, text, deltaDelayMs: 30, calls: [{ name: "note", arguments: {} }] },
  { text, deltaDelayMs: 30 },
];

export async function openWorld(tree: string): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-resume-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFiles(directory, {
    "agents/narrator.json": {
      name: agentName,
      model: { provider: "scripted", model: "narrator.json" },
      tools: { use: ["note"] },
    },
    "tools/note.json": { name: "note", executionType: "internal", effect: "pure" },
    "models/narrator.json": { turns },
  });
  const broker = stack.use(await openTestServer());
  const port = await freePort();
  const env = {
    ...process.env,
    TOOLBUS_BUS_CREDENTIALS: broker.credentials,
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_TOOLS: join(directory, "tools"),
    TOOLBUS_SCRIPTS: join(directory, "models"),
    TOOLBUS_HTTP_PORT: String(port),
    TOOLBUS_AUTH: "none",
    TOOLBUS_CHECKPOINT: "150ms",
  };
  const start = async (name: string, instance: string): Promise<Linked> => {
    let link: Promise<unknown> | undefined;
    const pass = () => (link === undefined ? "pass" : link.then(() => "pass" as const));
    const proxy = stack.use(await openNatsProxy({ port: Number(new URL(broker.url).port), onFrame: pass }));
    const linked = { ...env, TOOLBUS_INSTANCE: instance, NATS_URL: `nats://127.0.0.1:${proxy.port}` };
    const onUnaskedEnd = () => {}; // it is started again, which clients have to bear
    const service = stack.use(openFaultyService({ tree, service: name, instance, env: linked, onUnaskedEnd }));
    return {
      service,
      cut(until) {
        link = until;
        void until.then(() => {
          link = undefined;
        });
      },
    };
  };
  const [one, two, gateway, ...others] = await Promise.all([
    start("orchestrator", "orchestrator-1"),
    start("orchestrator", "orchestrator-2"),
    start("gateway", "gateway-1"),
    start("tool-router", "router-1"),
    start("spaces", "spaces-1"),
  ]);
  await Promise.all([one, two, gateway, ...others].map(({ service }) => service.ready()));
  const owned = stack.move();
  return {
    url: `http://127.0.0.1:${port}`,
    gateway,
    orchestrators: [one, two],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
