/** A program that opens sessions over HTTP/2, declares a tool in each, and answers what comes on its streams. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { argumentOf, sayFault, sayReady } from "../measuring/peer-process.ts";
import { AGENT, CALLER, TOOL } from "./setting.ts";

const { gatewayUrl, sessions: wanted } = argumentOf<{ gatewayUrl: string; sessions: number }>();
/** Each connection carries so many streams. */
const STREAMS = 90;
const AT_ONCE = 20;

const newClients = () => {
  const transport = createConnectTransport({ baseUrl: gatewayUrl, httpVersion: "2", useBinaryFormat: true });
  return { callers: createClient(CallerService, transport), sessions: createClient(SessionService, transport) };
};
const connections = Array.from({ length: Math.ceil(wanted / STREAMS) }, newClients);

async function open(index: number): Promise<string> {
  const { callers, sessions } = connections[index % connections.length] ?? newClients();
  const { session } = await sessions.createSession({ agent: AGENT });
  const sessionId = session?.id ?? "";
  await callers.declareTools({ sessionId, declaration: { callerId: CALLER, tools: [{ name: TOOL }] } });
  const attached = Promise.withResolvers<string>();
  const serve = async () => {
    for await (const { event } of callers.watchCaller({ sessionId })) {
      if (event.case === "attached") attached.resolve(sessionId);
      if (event.case !== "request") continue;
      const { requestId, argumentsJson } = event.value;
      void callers.respond({ sessionId, requestId, outcome: { case: "resultJson", value: argumentsJson } });
    }
    throw new Error(`the stream of ${sessionId} ended`);
  };
  serve().catch((error: unknown) => {
    attached.reject(error);
    sayFault(error);
  });
  return attached.promise;
}

const sessionIds: string[] = [];
let next = 0;
const worker = async () => {
  while (next < wanted) sessionIds.push(await open(next++));
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));
sayReady({ sessionIds });
