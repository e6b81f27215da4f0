import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { answerJson } from "../plain/exchange.ts";
import { answerEvents } from "./http/event-stream.ts";
import type { StreamEvent } from "./rendering/event-writer.ts";
import { inputItemsFrom } from "./rendering/input-items.ts";
import { notesOf } from "./request/notes.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";
import { acceptedRun, currentResponse, eventsOf, runIdOf } from "./runs.ts";

/** The response as it stands, or its events. */
export async function getResponse(exchange: ResponsesExchange, id: string): Promise<void> {
  const { query, response } = exchange;
  const runId = runIdOf(id);
  await requireStored(exchange, runId); // before a stream begins
  if (wordIn(query, "stream", ["true", "false"]) !== "true")
    return answerJson(response, 200, await currentResponse(exchange, runId));
  const after = numberIn(query, "starting_after") ?? -1;
  await answerEvents(response, behind(eventsOf(exchange, runId), after));
}

export async function cancelResponse(exchange: ResponsesExchange, id: string): Promise<void> {
  const { parts, options, response } = exchange;
  const runId = runIdOf(id);
  await parts.runs.cancelRun({ runId, reason: "canceled by the client of the response" }, options);
  answerJson(response, 200, await currentResponse(exchange, runId));
}

export async function deleteResponse({ parts, options, response }: ResponsesExchange, id: string): Promise<void> {
  await parts.runs.deleteRun({ runId: runIdOf(id) }, options);
  answerJson(response, 200, { id, object: "response", deleted: true });
}

/** A page of what the response was given; the latest first, unless told otherwise. */
export async function listInputItems(exchange: ResponsesExchange, id: string): Promise<void> {
  const { query, response } = exchange;
  const runId = runIdOf(id);
  const { input, options } = await requireStored(exchange, runId);
  const items = inputItemsFrom(runId, notesOf(options).system ?? "", input);
  if (wordIn(query, "order", ["asc", "desc"]) !== "asc") items.reverse();
  const limit = numberIn(query, "limit") ?? 20;
  if (limit < 1 || limit > 100) refuseField("limit", "must be from 1 to 100");
  const after = query.get("after");
  const from = after === null ? 0 : items.findIndex((item) => item.id === after) + 1;
  if (after !== null && from === 0) refuseField("after", "names no item of the input");
  const data = items.slice(from, from + limit);
  const [first = null, last = null] = [data[0]?.id, data.at(-1)?.id];
  const hasMore = from + limit < items.length;
  answerJson(response, 200, { object: "list", data, first_id: first, last_id: last, has_more: hasMore });
}

/** What was not to be stored is told once, to who asked for it. */
async function requireStored(exchange: ResponsesExchange, runId: string): Promise<RunAccepted> {
  const accepted = await acceptedRun(exchange, runId);
  if (notesOf(accepted.options).store !== false) return accepted;
  return refuse("not_found", "the response was not to be stored (store: false)", { reason: "RUN_NOT_FOUND" });
}

function numberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  if (text === "") return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : refuseField(name, "must be a number");
}

/** Python writes `True`. */
function wordIn(query: URLSearchParams, name: string, words: readonly string[]): string {
  const text = query.get(name)?.toLowerCase() ?? "";
  return text === "" || words.includes(text) ? text : refuseField(name, `must be ${words.join(" or ")}`);
}

async function* behind(batches: AsyncIterable<StreamEvent[]>, after: number): AsyncGenerator<StreamEvent[]> {
  for await (const events of batches) yield events.filter(({ sequence_number: number }) => number > after);
}
