// A provider of tools in TypeScript, on the bus. Start it twice, and the two share the work.
//
//   npx toolbus bus credentials --provider dice
//   NATS_URL=nats://127.0.0.1:4222 NATS_NKEY=.toolbus/bus/provider.dice.nk npx node examples/providers/typescript/provider.ts

import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponseSchema,
  ToolProviderService,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { delay } from "#runtime/time/delay.ts";

const roll = {
  name: "roll",
  description: "Rolls dice, one after the other.",
  inputSchemaJson: JSON.stringify({
    type: "object",
    properties: { sides: { type: "integer", minimum: 2 }, times: { type: "integer", minimum: 1 } },
    required: ["sides", "times"],
  }),
  executionType: ExecutionType.CUSTOM,
};

function offerFor(sources: Source[]) {
  return {
    tools: sources.map(({ name }) => ({ source: name, tool: roll })),
    sources: sources.map(({ name }) => ({ source: name, available: true })),
  };
}

type Event = MessageInitShape<typeof ExecuteToolResponseSchema>;

async function* call({ tool, argumentsJson }: ExecuteToolRequest, signal: AbortSignal): AsyncGenerator<Event> {
  if (tool !== roll.name) refuse("not_found", `there is no tool ${tool}`, { reason: "TOOL_NOT_FOUND" });
  const { sides, times } = JSON.parse(argumentsJson) as { sides: number; times: number };
  const rolled: number[] = [];
  if (times > 100) {
    yield resultOf({ error: "nobody rolls so many dice" }, true); // a tool's failure is a result for the model
    return;
  }
  for (let n = 0; n < times; n++) {
    rolled.push(randomInt(1, sides + 1));
    yield { event: { case: "progress" as const, value: { progress: n + 1, total: times } } };
    await delay(10, signal); // a canceled call ends here
  }
  yield resultOf({ rolled }, false);
}

function resultOf(output: object, isError: boolean): Event {
  return { event: { case: "result", value: { outputJson: JSON.stringify(output), isError } } };
}

const { NATS_URL: servers = "nats://127.0.0.1:4222", NATS_NKEY: key = ".toolbus/bus/provider.dice.nk" } = process.env;
const logger = createLogger({ name: "dice", level: "warn" });
const connection = await connect({
  servers,
  authenticator: nkeyAuthenticator(Buffer.from(readFileSync(key, "utf8").trim())),
  inboxPrefix: "_INBOX.provider.dice", // where answers to this key come, and to no other
  maxReconnectAttempts: -1,
});
await using stack = new AsyncDisposableStack();
stack.defer(() => connection.drain());
const options = {
  service: "dice",
  interceptors: serverInterceptors({ logger, fromOutside: true }), // nats-server lets the tool-router alone ask
  routes: (router: ConnectRouter) =>
    router.service(ToolProviderService, {
      getProvidedTools: ({ sources }) => offerFor(sources),
      async *watchProvidedTools({ sources }, { signal }) {
        yield offerFor(sources);
        await new Promise((resolve) => signal.addEventListener("abort", resolve)); // nothing changes meanwhile
      },
      executeTool: (request, { signal }) => call(request, signal),
    }),
};
stack.use(await serveOnNats({ connection }, options));
process.stdout.write("ready on the bus as dice\n");
await new Promise((resolve) => process.once("SIGTERM", resolve).once("SIGINT", resolve));
