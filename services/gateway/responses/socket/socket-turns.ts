import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import { turnForJson } from "#runtime/schema/json/json-turn.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import { jsonFromText, optionsFor, statusOf } from "../../plain/exchange.ts";
import { responseErrorFrom } from "../http/refusals.ts";
import { responseIdOf } from "../rendering/resource.ts";
import { type CreateBody, parseBody } from "../request/body.ts";
import type { ResponsesExchange } from "../responses-exchange.ts";
import { eventsOf } from "../runs.ts";
import { startRun } from "../start-run.ts";
import type { Send } from "./conversation.ts";

/**
 * The turns of one WebSocket, each a response by the same events as over HTTP. Each is let in by itself, as a request of the
 * connection's principal. What was not to be stored can be continued by its own connection alone, and there until a continuation of
 * it fails; what was stored, by any.
 */
export class SocketTurns {
  readonly #exchange: ResponsesExchange;
  /** Responses of this connection that were not to be stored, and may be continued on it. */
  readonly #own = new Set<string>();

  constructor(exchange: ResponsesExchange) {
    this.#exchange = exchange;
  }

  /** Answers a message. A turn that fails is told as an error, and the connection stands. */
  async take(text: string, send: Send): Promise<void> {
    const { request, parts, options } = this.#exchange;
    let previous: unknown;
    try {
      using turn = await parts.enterAgain(request);
      await turnForJson(text, { sender: principalOf(turn.caller), signal: options.signal });
      const value = jsonFromText(text);
      previous = fieldsOf(value).previous_response_id;
      const hasFailed = await this.#create(turn.caller, bodyFrom(value), send);
      if (hasFailed) this.#own.delete(String(previous));
    } catch (error) {
      this.#own.delete(String(previous));
      const failure = failureFromConnectError(error);
      if (failure.code === "internal") parts.onFault(error);
      await send({ type: "error", status: statusOf(failure), error: responseErrorFrom(failure) });
    }
  }

  /** Gives whether the response failed. */
  async #create(caller: Caller, body: CreateBody, send: Send): Promise<boolean> {
    const { parts, options } = this.#exchange;
    const asking = { parts, options: { ...optionsFor(caller), signal: options.signal } };
    const runId = await startRun(asking, body, { own: this.#own });
    let last = "";
    for await (const events of eventsOf(asking, runId, true)) {
      await Promise.all(events.map(send));
      last = events.at(-1)?.type ?? last;
    }
    const hasFailed = last === "response.failed";
    if (body.store === false && !hasFailed) this.#own.add(responseIdOf(runId));
    return hasFailed;
  }
}

/** The message is the body of a request, and says so. What belongs to streams over HTTP (`stream`) says nothing here. */
function bodyFrom(value: unknown): CreateBody {
  const { type, stream: _, stream_options: __, ...body } = fieldsOf(value);
  if (type !== "response.create") refuseField("type", 'must be "response.create": there are no other messages');
  if (body.background === true) refuseField("background", "belongs to requests over HTTP: leave it out");
  if (body.generate === false)
    refuseField("generate", "must not be false: nothing is gained here by a request before the request");
  return parseBody(body);
}
