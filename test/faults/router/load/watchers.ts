/** Ten services outside, each on a connection of its own: they take calls and execute them; others say what came of it. */
import type { Client } from "@connectrpc/connect";
import { type ToolCallDelivery, ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { delay } from "#runtime/time/delay.ts";
import { clientFor } from "../../../../services/clients.ts";
import { retryRequest } from "../../retry-request.ts";
import { type CallArguments, type Login, peers, tools, type WatcherWord } from "../setting.ts";

const login: Login = JSON.parse(process.argv[2] ?? "");
const watched = tools.map(({ name }) => name);
const patienceMs = 60_000;
const tell = (word: WatcherWord) => void process.send?.(word);

async function execute(watcher: string, calls: Client<typeof ToolCallService>, handed: ToolCallDelivery) {
  const { call, deliveryId } = handed;
  const { callId = "", argumentsJson = "" } = call ?? {};
  try {
    await retryRequest(() => calls.acknowledgeToolCall({ callId, deliveryId }), performance.now() + patienceMs);
  } catch {
    return; // it is another's, or over
  }
  const { number, workMs } = JSON.parse(argumentsJson) as CallArguments;
  tell({ kind: "executed", watcher, deliveryId, callId, atMs: Date.now() });
  await delay(workMs);
  tell({ kind: "done", watcher, callId, number });
}

async function watch(watcher: string): Promise<never> {
  const bus = await openBus({ ...login, name: watcher });
  const calls = clientFor(bus, ToolCallService);
  for (let stream = 1; ; stream++) {
    try {
      const request = { tools: watched, watcherId: watcher, maxInFlight: 8 };
      for await (const { update } of calls.watchToolCalls(request)) {
        if (update.case !== "call") continue;
        const handed = update.value;
        const { call, deliveryId } = handed;
        tell({ kind: "handed", watcher, stream, deliveryId, callId: call?.callId ?? "", atMs: Date.now() });
        void execute(watcher, calls, handed);
      }
    } catch {
      // its router is gone: another one serves the next stream
    }
    tell({ kind: "stream ended", watcher, stream, atMs: Date.now() });
    await delay(50);
  }
}

process.on("disconnect", () => process.exit());
for (let number = 1; number <= peers; number++) void watch(`watcher-${number}`);
tell({ kind: "ready" });
