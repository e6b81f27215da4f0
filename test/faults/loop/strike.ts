import { create, toBinary } from "@bufbuild/protobuf";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import type { Verdict } from "../../harness/proxy/nats-proxy.ts";
import type { FaultyService } from "../processes/faulty-service.ts";
import type { Random } from "../random.ts";
import type { RunClient } from "./peers/client.ts";
import type { ProviderFault } from "./peers/model-server.ts";
import type { Fault } from "./plan/points.ts";
import type { World } from "./world.ts";

/** What a fault is to do with, and what it leaves for later. */
export interface Struck {
  readonly world: World;
  readonly random: Random;
  readonly client: RunClient;
  readonly sessionId: string;
  readonly runId: string;
  readonly victim: FaultyService;
  /** What is held back on the wire meanwhile: an append, the word that it is stored, or nothing. */
  readonly held: "sent" | "stored" | undefined;
  /** Whether the victim works on the run, so that somebody else has to claim it. */
  readonly isHolder: boolean;
  readonly latestEpoch: () => number;
  readonly hasEnded: () => boolean;
  readonly later: (deed: "drop" | "twice" | ProviderFault) => void;
  readonly onHit: () => void;
}

/** After this long the lease of a process that says nothing is over: the wake-up is given on, and its silence heard. */
const pastLeaseMs = 2_500;
const silentMs = 7_000;

/** Makes the fault happen. Gives what becomes of that which is held back. */
export async function strike(fault: Fault, struck: Struck): Promise<Verdict> {
  switch (fault) {
    case "kill -9":
      await struck.victim.kill();
      struck.onHit();
      return "drop";
    case "SIGSTOP":
      return freezeVictim(struck);
    case "spaces kill -9":
      await struck.world.spaces.kill();
      struck.onHit();
      return "pass";
    case "spaces SIGSTOP":
      return freezeServices(struck, [struck.world.spaces]);
    case "routers SIGSTOP":
      return freezeServices(struck, struck.world.routers);
    case "broker kill":
      await struck.world.broker.kill();
      struck.onHit();
      await struck.world.broker.restart();
      return "pass";
    case "broker freeze":
      return freezeBroker(struck);
    case "lost acknowledgement":
      if (struck.held !== "stored") struck.later("drop");
      else struck.onHit();
      return struck.held === "stored" ? "drop" : "pass";
    case "duplicate delivery":
      return deliverTwice(struck);
    case "provider 429":
    case "provider stall":
    case "provider reset":
    case "provider garbage":
      struck.later(fault.slice("provider ".length) as ProviderFault);
      return "pass";
  }
}

/** What it had sent goes on its way while it is frozen, or when it is back. */
async function freezeVictim({ victim, isHolder, latestEpoch, hasEnded, onHit }: Struck): Promise<Verdict> {
  const epoch = latestEpoch();
  victim.freeze();
  onHit();
  await delay(pastLeaseMs);
  const isOver = () => !isHolder || latestEpoch() > epoch || hasEnded();
  await until(isOver, { timeoutMs: 3_000 }).catch(() => {}); // nobody had to take over: nothing was left to do
  setTimeout(() => victim.thaw(), 50);
  return "pass";
}

/** They are silent for longer than the loop waits for an answer. What is held goes on its way meanwhile. */
async function freezeServices({ onHit }: Struck, services: readonly FaultyService[]): Promise<Verdict> {
  for (const service of services) service.freeze();
  onHit();
  setTimeout(() => {
    for (const service of services) service.thaw();
  }, silentMs);
  return "pass";
}

async function freezeBroker({ world: { broker }, random, onHit }: Struck): Promise<Verdict> {
  const { pid } = broker;
  process.kill(pid, "SIGSTOP");
  onHit();
  await delay(random.pick([300, 1_200, 2_500, 2_500, 7_000]));
  process.kill(pid, "SIGCONT");
  return "pass";
}

async function deliverTwice({ world, client, sessionId, runId, held, later, onHit }: Struck): Promise<Verdict> {
  const wake = toBinary(SessionWakeSchema, create(SessionWakeSchema, { sessionId, runId, eventCount: 1 }));
  for (let count = 0; count < 2; count += 1) world.bus.connection.publish(`toolbus.wake.${sessionId}`, wake);
  void client.repeat();
  onHit();
  if (held === "sent") return "twice";
  later("twice");
  return "pass";
}
