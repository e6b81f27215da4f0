// A service of your own that executes a tool: it watches for calls and submits results, from wherever it can reach the
// gateway. Run it with `node examples/watchers/stock.ts`, the suite's address in TOOLBUS_URL and a key, if the gateway wants
// one, in TOOLBUS_API_KEY. Start it twice, and each call goes to one of the two.

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ToolCallService, type WatchToolCallsResponse } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";

const { TOOLBUS_URL = "http://127.0.0.1:7480", TOOLBUS_API_KEY } = process.env;

const authorize: Interceptor = (next) => (request) => {
  if (TOOLBUS_API_KEY) request.header.set("authorization", `Bearer ${TOOLBUS_API_KEY}`);
  return next(request);
};
const transport = createConnectTransport({ baseUrl: TOOLBUS_URL, httpVersion: "2", interceptors: [authorize] });
const calls = createClient(ToolCallService, transport);

/** A new name for each process: under it a broken stream is taken up again, and what was taken stays taken. */
const watcherId = `stock-${randomUUID()}`;
const stock: Record<string, number> = { screws: 1_200, nuts: 7 };

async function handle({ update }: WatchToolCallsResponse): Promise<void> {
  if (update.case === "notice") console.error([update.value.problem, ...update.value.closestNames].join(" · "));
  if (update.case !== "call") return; // one that is withdrawn was canceled: stop working on it
  const { deliveryId, call: { callId, argumentsJson } = { callId: "", argumentsJson: "" } } = update.value;
  try {
    await calls.acknowledgeToolCall({ callId, deliveryId }); // from here on it is ours; refused, it is somebody else's
    const { article } = JSON.parse(argumentsJson) as { article: string };
    const pieces = stock[article];
    const outcome =
      pieces === undefined
        ? { case: "error" as const, value: `there is no article ${article}` }
        : { case: "resultJson" as const, value: `${pieces}` };
    await calls.submitToolResult({ callId, outcome });
    console.log(`${callId}: ${article} ${JSON.stringify(outcome)}`);
  } catch (error) {
    console.error(`${callId}: ${error}`);
  }
}

for (;;) {
  try {
    console.log("watching");
    for await (const handed of calls.watchToolCalls({ tools: ["stock_level"], watcherId })) void handle(handed);
  } catch (error) {
    console.error(`the watch is taken up again: ${error}`);
  }
  await setTimeout(200);
}
