import { refuseField } from "#runtime/failure/failure.ts";
import { answerJson, readJson } from "../plain/exchange.ts";
import { answerEnded } from "./http/ended-response.ts";
import { answerEvents } from "./http/event-stream.ts";
import { parseBody } from "./request/body.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";
import { currentResponse, endedResponse, eventsOf } from "./runs.ts";
import { startAskedRun } from "./start-run.ts";

/** Starts a run, and tells of it as it is asked for. A client that leaves has canceled nothing. */
export async function createResponse(exchange: ResponsesExchange): Promise<void> {
  const { response } = exchange;
  const body = parseBody(await readJson(exchange, exchange.parts.maxBytes));
  if (body.background && body.store === false && !body.stream)
    refuseField("background", "nobody could ask for a response that is not stored: stream it, or store it");
  const runId = await startAskedRun(exchange, body);
  if (body.stream) await answerEvents(response, eventsOf(exchange, runId));
  else if (body.background) answerJson(response, 200, await currentResponse(exchange, runId));
  else answerEnded(response, await endedResponse(exchange, runId), (ended) => ended);
}
