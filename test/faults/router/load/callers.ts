import { ConnectError } from "@connectrpc/connect";
import type { CallToolResult } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Random } from "../../random.ts";
import { type CallArguments, lateMs, tools } from "../setting.ts";
import type { Clients, World } from "../world.ts";
import type { Witness } from "./witness.ts";

const patienceMs = 90_000;

/** Codes at which the orchestrator repeats a call under its id. */
const passingCodes: ReadonlySet<string> = new Set(["unavailable", "aborted"]);

interface Request {
  readonly callId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly argumentsJson: string;
}

/** Makes one call after another as the orchestrator does, and writes down what became of each. */
export async function call(world: World, witness: Witness, random: Random, number: number): Promise<void> {
  const callId = `call-${number}`;
  const tool = number % 40 === 0 ? tools[4] : tools[number % 4];
  if (tool === undefined) throw new Error("there is no such tool");
  const workMs = tool.name === "hurry" ? lateMs : Math.floor(random.next() ** 4 * 500);
  const argumentsJson = JSON.stringify({ number, workMs } satisfies CallArguments);
  witness.began(callId, tool, number);
  const sessionId = random.pick(world.sessionIds);
  await untilAnswered(world.clients, witness, { callId, sessionId, name: tool.name, argumentsJson });
}

async function untilAnswered({ router }: Clients, witness: Witness, request: Request): Promise<void> {
  const { callId } = request;
  const givesUpAtMs = performance.now() + patienceMs;
  for (let recovering = false; ; recovering = true) {
    const attemptAtMs = Date.now();
    witness.attempted(callId);
    try {
      const { outputJson, isError } = await attempt(router, { ...request, recovering });
      return witness.ended(callId, { answer: { outputJson, isError, atMs: Date.now(), attemptAtMs } });
    } catch (error) {
      const { code } = failureFromConnectError(error);
      if (!passingCodes.has(code) || performance.now() > givesUpAtMs) {
        return witness.ended(callId, { failure: ConnectError.from(error).message });
      }
      await delay(100);
    }
  }
}

async function attempt(
  router: Clients["router"],
  { recovering, ...call }: Request & { recovering: boolean },
): Promise<CallToolResult> {
  const runContext = encodeRunContext({ recovering });
  let result: CallToolResult | undefined;
  try {
    for await (const { event } of router.callTool({ ...call, runContext }))
      if (event.case === "result") result = event.value;
  } catch (error) {
    if (result === undefined) throw error; // after the result nothing is missed
  }
  if (result === undefined) throw new Error("the call ended without a result");
  return result;
}
