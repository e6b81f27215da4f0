/** Calls the tool as the loop does, and says how long each call took. */
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { clientFor } from "../../services/clients.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import {
  CALLERS_ROUTER,
  INTERNAL_TOOL,
  type Order,
  PROVIDER_TOOL,
  RAW_SUBJECT,
  type Report,
  SOURCE,
  TOOL,
} from "./setting.ts";

const { sessionId, ...login } = argumentOf<Login & { sessionId: string }>();
const bus = await openBus({ ...login, name: "caller" });
const router = clientFor(bus, ToolService, { process: CALLERS_ROUTER });

async function call(name: string, argumentsJson: string): Promise<string> {
  let answer = "";
  for await (const { event } of router.callTool({ callId: randomUUID(), sessionId, name, argumentsJson })) {
    if (event.case === "result") answer = event.value.outputJson;
  }
  return answer;
}

const ways: Record<Order["way"], (argumentsJson: string) => Promise<string>> = {
  call: (argumentsJson) => call(TOOL, argumentsJson),
  async internal(argumentsJson) {
    const { args } = JSON.parse(await call(INTERNAL_TOOL, argumentsJson)) as { args: unknown };
    return JSON.stringify(args);
  },
  provider: (argumentsJson) => call(`@${SOURCE}/${PROVIDER_TOOL}`, argumentsJson),
  raw: async (text) => (await bus.connection.request(RAW_SUBJECT, text, { timeout: 30_000 })).string(),
};

async function measure({ way, calls, inFlight, perSecond }: Order): Promise<Report> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < calls) {
      const n = next++;
      const beginsAt = perSecond ? startedAt + (n * 1_000) / perSecond : performance.now();
      const leftMs = beginsAt - performance.now();
      if (leftMs > 0) await setTimeout(leftMs);
      const from = leftMs > 0 ? performance.now() : beginsAt; // the lateness of its own timer is not the call's
      const text = JSON.stringify({ n });
      const answer = await ways[way](text);
      if (answer !== text) throw new Error(`call ${n} was answered with ${answer}`);
      latenciesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return { latenciesMs, tookMs: performance.now() - startedAt };
}

answerOrders(measure);
sayReady();
