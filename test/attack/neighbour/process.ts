// Another principal's program: it calls at an even pace, whether or not the calls before have been answered, so that a pause of the
// suite costs each call that falls into it.

import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { gatewayAt } from "../../system/access/world.ts";
import { type FromNeighbour, type NeighbourCall, neighbourSession, type ToNeighbour } from "./calls.ts";

const EVERY_MS = 20;
const TIMEOUT_MS = 30_000;

const tell = (message: FromNeighbour) => process.send?.(message);
let taken: NeighbourCall[] = [];

function begin(url: string, key: string): void {
  const { client } = gatewayAt(url, key);
  const [sessions, tools] = [client(SessionService), client(ToolService)];
  const sessionId = neighbourSession;
  const call = async (name: string, argumentsJson: string) => {
    for await (const { event } of tools.callTool({ sessionId, name, argumentsJson }, { timeoutMs: TIMEOUT_MS })) {
      if (event.case !== "result") continue;
      if (event.value.isError) throw new Error(JSON.stringify(event.value.outputJson));
      return;
    }
    throw new Error("there was no result");
  };
  const kinds: Record<string, () => Promise<unknown>> = {
    note: () => call("note", '{"a":1}'),
    GetSession: () => sessions.getSession({ sessionId }, { timeoutMs: TIMEOUT_MS }),
    worker: () => call("@calm/add", '{"a":1,"b":2}'),
    ListTools: () => tools.listTools({ scope: { case: "session", value: { sessionId } } }, { timeoutMs: TIMEOUT_MS }),
    mcp: () => call("@everything/echo", '{"message":"hello"}'),
  };
  const order = Object.entries(kinds);
  let count = 0;
  const pace = () => {
    const [what, work] = order[count++ % order.length]!;
    const startedAt = performance.now();
    work().then(
      () => taken.push({ what, tookMs: performance.now() - startedAt }),
      (error: unknown) =>
        taken.push({ what, tookMs: performance.now() - startedAt, lost: `${what}: ${messageFromUnknown(error)}` }),
    );
  };
  setInterval(pace, EVERY_MS);
  tell({ kind: "ready" });
}

process.on("message", (message: ToNeighbour) => {
  if (message.kind === "begin") begin(message.url, message.key);
  else {
    tell({ kind: "calls", calls: taken });
    taken = [];
  }
});
process.on("disconnect", () => process.exit());
