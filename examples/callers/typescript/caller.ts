// Opens a session, offers it a tool of this program, and lets an agent call it. On the way its stream is lost once.
//
// Run it with `npx node examples/callers/typescript/caller.ts A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";

const order = process.argv[2] ?? "A-17";
const authorize: Interceptor = (next) => (request) => {
  request.header.set("authorization", `Bearer ${process.env.TOOLBUS_API_KEY}`);
  return next(request);
};
const baseUrl = process.env.TOOLBUS_URL ?? "http://127.0.0.1:7480";
const transport = createGrpcTransport({ baseUrl, interceptors: [authorize] });
const callers = createClient(CallerService, transport);
const runs = createClient(RunService, transport);
const sessions = createClient(SessionService, transport);

const { session } = await sessions.createSession({ agent: "clerk" });
const sessionId = session?.id ?? "";
const inputSchemaJson = JSON.stringify({
  type: "object",
  properties: { order: { type: "string" } },
  required: ["order"],
});
const tools = [{ name: "find_order", description: "Tells where an order is", inputSchemaJson }];
await callers.declareTools({ sessionId, declaration: { callerId: "desk", tools } });

const done = new AbortController();
let isLost = false;

/** The same request comes again when the stream was lost before it was answered: it is done once, by its id. */
const answers = new Map<string, string>();

async function answer({ requestId, argumentsJson }: CallerToolRequest): Promise<void> {
  if (!answers.has(requestId))
    answers.set(requestId, JSON.stringify({ ...JSON.parse(argumentsJson), state: "on its way" }));
  const outcome = { case: "resultJson", value: answers.get(requestId) ?? "" } as const;
  await callers.respond({ sessionId, requestId, submissionId: requestId, outcome });
}

/** Attaches again whenever the stream is lost, under the same name, so that what is open comes again. */
async function serve(): Promise<void> {
  const streamId = randomUUID();
  while (!done.signal.aborted) {
    const losing = new AbortController();
    const signal = AbortSignal.any([done.signal, losing.signal]);
    try {
      const stream = callers.watchCaller({ sessionId, streamId, reconnectGrace: durationFromMs(10_000) }, { signal });
      for await (const { event } of stream) {
        console.log(event.case);
        if (event.case === "request" && !isLost) {
          isLost = true;
          losing.abort(); // stands for a network that fails here
        } else if (event.case === "request") await answer(event.value);
      }
    } catch (error) {
      const { code } = ConnectError.from(error);
      if (![Code.Canceled, Code.Unavailable, Code.Aborted].includes(code)) throw error;
      await delay(100);
    }
  }
}

const serving = serve();
const content = [{ part: { case: "text" as const, value: order } }];
const input = [{ item: { case: "message" as const, value: { role: Role.USER, content } } }];
const { run } = await runs.createRun({ sessionId, agent: "clerk", input });
let isRight = false;
for await (const { update } of runs.watchRun({ runId: run?.id ?? "", fromSequence: 0n })) {
  if (update.case !== "event" || update.value.event.case !== "ended") continue;
  const { state, outputText } = update.value.event.value;
  console.log(`the run ended: ${outputText}`);
  isRight = isLost && state === RunState.COMPLETED && outputText.includes(`${order} is on its way`);
}
done.abort();
await serving;
process.exitCode = isRight ? 0 : 1;
