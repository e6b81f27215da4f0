import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { answerStream, readJson } from "../../plain/exchange.ts";
import { answerEnded } from "../http/ended-response.ts";
import { DONE } from "../http/event-stream.ts";
import { responseErrorFrom } from "../http/refusals.ts";
import type { StreamEvent } from "../rendering/event-writer.ts";
import type { ResponsesExchange } from "../responses-exchange.ts";
import { endedResponse, eventsOf } from "../runs.ts";
import { startAskedRun } from "../start-run.ts";
import { parseChat } from "./body.ts";
import { Chunks } from "./chunks.ts";
import { completionFrom } from "./completion.ts";

/** A completion is a response in the older form. */
export async function createCompletion(exchange: ResponsesExchange): Promise<void> {
  const { response } = exchange;
  const { body, places, includesUsage } = parseChat(await readJson(exchange, exchange.parts.maxBytes));
  const runId = await startAskedRun(exchange, body).catch(refuseMessages(places));
  if (body.stream) return answerStream(response, textsFrom(eventsOf(exchange, runId), new Chunks(includesUsage)));
  answerEnded(response, await endedResponse(exchange, runId), completionFrom);
}

/** A response's word for the messages is the input. */
const refuseMessages =
  (places: readonly string[]) =>
  (error: unknown): never => {
    const { code, message, reason, fieldViolations } = failureFromConnectError(error);
    if (fieldViolations === undefined) throw error;
    const inMessages = (text: string) =>
      text
        .replace(/(\binput\[\d+\])\.output\b/g, "$1.content")
        .replace(/\binput\[(\d+)\]/g, (item, n) => places[Number(n)] ?? item);
    const fields = fieldViolations.map((fault) => ({
      ...fault,
      field: fault.field === "input" ? "messages" : inMessages(fault.field),
    }));
    throw new Failure(code, inMessages(message), { reason, fieldViolations: fields, cause: error });
  };

/** A stream that breaks says why, and has no `[DONE]`. */
async function* textsFrom(batches: AsyncIterable<StreamEvent[]>, chunks: Chunks): AsyncGenerator<string> {
  try {
    let isWhole = false;
    for await (const events of batches) {
      const sent = events.flatMap((event) => chunks.from(event));
      if (sent.length > 0) yield sent.map(textOf).join("");
      isWhole = sent.every((chunk) => !("error" in chunk));
    }
    if (isWhole) yield DONE;
  } catch (cause) {
    yield textOf({ error: responseErrorFrom(cause) });
  }
}

const textOf = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`;
