/*
 * An agent for any client of OpenAI's (LOOP-18), by Open Responses of 2026-04-24:
 *
 *   POST   /v1/responses                        creates a response; `stream`, `background`
 *   GET    /v1/responses                        a WebSocket, whose messages create responses (`socket/`)
 *   GET    /v1/responses/:id                    the response; with `?stream=true&starting_after=N` its events behind N
 *   POST   /v1/responses/:id/cancel             cancels it
 *   DELETE /v1/responses/:id                    deletes it, once it has ended
 *   GET    /v1/responses/:id/input_items        what it was given
 *   POST   /v1/responses/compact                a conversation, summarized
 *   POST   /v1/chat/completions                 the same, in its older form (`chat/`)
 *   GET    /v1/models, /v1/models/:id           the agents
 *
 * It translates, and keeps nothing:
 *
 * responses-1  A response is a run, and its id is the run's. `model` names the agent; a conversation is a session.
 * responses-2  What a response tells follows from the run's log (`rendering/`), so any gateway goes on with it.
 * responses-3  A client that leaves has canceled nothing.
 * responses-4  All is asked for as the client's principal: rules, policies, shares and audit are those of the services.
 */

import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { signalOf } from "#runtime/rpc/http/connect/reply.ts";
import { type Door, routeTable } from "../plain/door.ts";
import { type Exchange, optionsFor } from "../plain/exchange.ts";
import { createCompletion } from "./chat/create.ts";
import { compactConversation } from "./compact.ts";
import { createResponse } from "./create.ts";
import { answerMethodRefusal, answerRefusal } from "./http/refusals.ts";
import { getModel, listModels } from "./models.ts";
import type { ResponsesExchange, ResponsesParts } from "./responses-exchange.ts";
import { isUnknownRun, refuseUnknown } from "./runs.ts";
import { openSocket } from "./socket/open-socket.ts";
import { cancelResponse, deleteResponse, getResponse, listInputItems } from "./stored.ts";

type Answer = (exchange: ResponsesExchange, id: string) => Promise<void>;

/** What is asked for, by its method and path. The events of a response take a stream of the principal's share, all else a call. */
const ROUTES: readonly { method: string; route: string; kind: "calls" | "streams"; answer: Answer }[] = [
  { method: "POST", route: "/v1/responses", kind: "streams", answer: createResponse },
  { method: "GET", route: "/v1/responses", kind: "streams", answer: openSocket },
  { method: "POST", route: "/v1/responses/compact", kind: "streams", answer: compactConversation },
  { method: "GET", route: "/v1/responses/{id}", kind: "streams", answer: getResponse },
  { method: "POST", route: "/v1/responses/{id}/cancel", kind: "calls", answer: cancelResponse },
  { method: "DELETE", route: "/v1/responses/{id}", kind: "calls", answer: deleteResponse },
  { method: "GET", route: "/v1/responses/{id}/input_items", kind: "streams", answer: listInputItems },
  { method: "POST", route: "/v1/chat/completions", kind: "streams", answer: createCompletion },
  { method: "GET", route: "/v1/models", kind: "calls", answer: listModels },
  { method: "GET", route: "/v1/models/{id}", kind: "calls", answer: getModel },
];

const OFFERED = "agents answer at /v1/responses and /v1/chat/completions, and /v1/models lists them";
const served = routeTable(ROUTES);

export function createResponsesDoor(parts: ResponsesParts): Door {
  return {
    routes: ROUTES.map(({ route }) => route),
    takes(request, response, body) {
      const [path = "", query] = (request.url ?? "/").split("?", 2);
      if (!path.startsWith("/v1/")) return false;
      const asked = { path: path.replace(/(?<=.)\/$/, ""), query: new URLSearchParams(query) };
      answer(parts, { request, response, body }, asked).catch((error: unknown) => {
        if (failureFromConnectError(error).code === "internal") parts.onFault(error);
        if (response.headersSent) response.destroy();
        else answerRefusal(response, error);
      });
      return true;
    },
  };
}

async function answer(
  parts: ResponsesParts,
  given: Exchange,
  { path, query }: { path: string; query: URLSearchParams },
): Promise<void> {
  const { request, response } = given;
  const found = served.find(request.method, path);
  const caller = await parts.enter(request, response, found?.route.kind ?? "calls");
  if (found === undefined) return refuseRoute(given, path);
  const { route, segment } = found;
  const exchange = { ...given, parts, options: { ...optionsFor(caller), signal: signalOf(response) }, query };
  await route
    .answer(exchange, segment)
    .catch((error: unknown) =>
      segment !== "" && isUnknownRun(error) ? refuseUnknown(segment, error) : Promise.reject(error),
    );
}

function refuseRoute({ request, response }: Exchange, path: string): void {
  const namesNoResponse = /^\/v1\/responses\/(?!resp_|compact$)/.test(path);
  const allowed = namesNoResponse ? [] : served.methodsOf(path);
  if (allowed.length === 0)
    refuse("not_found", `there is no ${request.method} ${path} here: ${OFFERED}`, { reason: "PATH_NOT_FOUND" });
  response.setHeader("allow", allowed.join(", "));
  answerMethodRefusal(response, `${path} takes ${allowed.join(" and ")}, not ${request.method}`);
}
