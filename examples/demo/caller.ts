import { Code, ConnectError } from "@connectrpc/connect";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import type { Connection } from "../../cli/connection.ts";

/**
 * The program that opened the session offers a tool of its own: `notify`, which the agent sees as `demo_notify`. Resolves
 * once requests can come; aborting the signal detaches it.
 */
export async function attachCaller(connection: Connection, sessionId: string, signal: AbortSignal): Promise<void> {
  const relay = connection.client(CallerService);
  const inputSchemaJson = JSON.stringify({
    type: "object",
    properties: { message: { type: "string" } },
    required: ["message"],
  });
  const notify = { name: "notify", description: "Tell the program that started this", inputSchemaJson };
  await relay.declareTools({ sessionId, declaration: { callerId: "demo", tools: [notify] } });
  const attached = Promise.withResolvers<void>();

  const answerRequests = async () => {
    for await (const { event } of relay.watchCaller({ sessionId }, { signal })) {
      if (event.case === "attached") attached.resolve();
      if (event.case !== "request") continue; // `canceled` stops work that takes time; this is done when it is asked for
      const { requestId, argumentsJson } = event.value;
      const { message } = JSON.parse(argumentsJson) as { message: string };
      await relay
        .respond({
          sessionId,
          requestId,
          outcome: { case: "resultJson", value: JSON.stringify({ received: message }) },
        })
        .catch(refuseUnlessResolved);
    }
  };
  answerRequests().catch((error: unknown) => {
    if (!signal.aborted) attached.reject(error);
  });
  await attached.promise;
}

/** The request was canceled while it was answered: nobody misses the answer. */
function refuseUnlessResolved(error: unknown): void {
  if (!(error instanceof ConnectError && error.code === Code.NotFound)) throw error;
}
