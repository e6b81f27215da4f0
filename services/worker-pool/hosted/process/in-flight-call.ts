import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Answer } from "../../calls/answer.ts";
import { lineOfJson } from "../../calls/json-line.ts";
import type { Host, HostedCall } from "./host.ts";
import type { FromModule, ToModule } from "./messages.ts";

/** A call in a module's process. */
export interface InFlightCall {
  readonly call: HostedCall;
  readonly settle: PromiseWithResolvers<Answer>;
  /** When the tool has ended, though nobody waits for it any more. */
  readonly ended: PromiseWithResolvers<void>;
  isGivenUp: boolean;
  /** How often it has asked for something; each question has an id of its own. */
  asks: number;
}

export function openInFlightCall(call: HostedCall): InFlightCall {
  return { call, settle: Promise.withResolvers(), ended: Promise.withResolvers(), isGivenUp: false, asks: 0 };
}

/** What the process is told of a question that a call in it has asked. */
export async function answerAsk(
  host: Host,
  inFlight: InFlightCall | undefined,
  { askId, ask }: Extract<FromModule, { kind: "ask" }>,
): Promise<ToModule> {
  try {
    if (!inFlight || inFlight.isGivenUp) return { kind: "refusal", askId, error: "the call is over" };
    const answer = await host.answer(ask, `${inFlight.call.callId}_${++inFlight.asks}`, inFlight.call);
    if (answer.kind === "error") return { kind: "refusal", askId, error: answer.error };
    return { kind: "reply", askId, valueJson: answer.resultJson };
  } catch (error) {
    return { kind: "refusal", askId, error: messageFromUnknown(error) };
  }
}

/** What the process is told of a call. The JSON texts are written as they are. */
export function lineFromCall(id: number, { tool, callId, argumentsJson, configJson, secretsJson }: HostedCall): string {
  const names = `"kind":"call","id":${id},"tool":${JSON.stringify(tool)},"callId":${JSON.stringify(callId)}`;
  return lineOfJson(`{${names},"arguments":${argumentsJson},"config":${configJson},"secrets":${secretsJson}}`);
}
