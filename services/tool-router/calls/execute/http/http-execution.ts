import type { Dispatcher } from "undici";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { AddressGuard } from "#runtime/http/address-guard.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { ToolEntry } from "../../../tools/tool-set/tool-set.ts";
import { type Answer, canceled, failure, outcomeUnknown } from "../../answers/answer.ts";
import type { Deadline } from "../limits/deadline.ts";
import type { HttpClient } from "./http-client.ts";
import { type CallArguments, isRedirect, type Outgoing, redirected, repeatsAsGet, requestOfCall } from "./request.ts";
import { answerFromResponse } from "./response.ts";
import { tellingStart } from "./watched-dispatcher.ts";

/*
 * Each hop is resolved once, and connected to the address that the guard has judged. A redirect to another origin gets none of
 * the configured headers, and a request with secrets does not follow one. Responses are unpacked and bounded (response.ts). inside.test.ts lists
 * the ways in that are tried.
 */

/** TOOL-3: calls of URLs over pooled connections that lead only where the guard allows. */
export interface HttpExecution extends AsyncDisposable {
  execute(entry: ToolEntry, args: CallArguments, deadline: Deadline, signal: AbortSignal): Promise<Answer>;
}

export interface HttpExecutionOptions {
  guard: AddressGuard;
  /** By name, for `${secret:NAME}` in header values. */
  secrets: ReadonlyMap<string, string>;
  maxResponseBytes: number;
}

const MAX_REDIRECTS = 5;
const MAX_REDIRECT_BODY_BYTES = 16_384;

interface Trip {
  readonly signal: AbortSignal;
  /** Whether a request has gone out that a server may have carried out. */
  mayHaveActed: boolean;
}

export function openHttpExecution(options: HttpExecutionOptions): HttpExecution {
  const { guard, secrets, maxResponseBytes: maxBytes } = options;
  let client: Promise<HttpClient> | undefined;

  const redact = createRedaction(secrets);

  /** A server may answer with what it was sent: an error is read by more people than may know the secrets. */
  const execute: HttpExecution["execute"] = async (...call) => {
    const answer = await executed(...call);
    return answer.isError ? { ...answer, outputJson: redact(answer.outputJson) } : answer;
  };

  const executed: HttpExecution["execute"] = async ({ tool, effect }, args, deadline, signal) => {
    using timeout = timeoutSignal(Math.max(1, deadline.timeoutMs));
    using ending = openEnding(signal, timeout);
    const trip: Trip = { signal: ending.signal, mayHaveActed: false };
    try {
      return await follow(requestOfCall(tool, args, secrets), trip);
    } catch (error) {
      if (timeout.aborted) return failure(`Tool timed out after ${deadline.timeoutMs}ms`, "DEADLINE_EXCEEDED");
      if (signal.aborted) return canceled(trip.mayHaveActed ? effect : Effect.PURE, signal.reason);
      const [name, cause] = [JSON.stringify(tool.name), messageFromUnknown(error)];
      if (trip.mayHaveActed && effect === Effect.AT_MOST_ONCE) return outcomeUnknown(`${name} was called: ${cause}`);
      return failure(`${name} cannot be called: ${cause}`);
    }
  };

  /** Each hop is a request of its own, which the guard judges like the first. */
  async function follow(first: Outgoing, trip: Trip): Promise<Answer> {
    let outgoing = first;
    const { signal } = trip;
    client ??= import("./http-client.ts").then(({ openHttpClient }) => openHttpClient(guard)); // with the first call: it takes 20 MB
    const { agent, request } = await client;
    const dispatcher = tellingStart(agent, () => {
      trip.mayHaveActed = true;
    });
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const { url, method, headers, body } = outgoing;
      const known = method as Dispatcher.HttpMethod; // undici takes every token, and names only the known ones in its type
      const response = await request(url, { method: known, headers, body, signal, dispatcher });
      const { statusCode: status } = response;
      const { location } = response.headers;
      if (!isRedirect(status, location))
        return answerFromResponse({ ...response, status }, method, { maxBytes, signal });
      await response.body.dump({ limit: MAX_REDIRECT_BODY_BYTES, signal });
      if (!repeatsAsGet(status, method)) trip.mayHaveActed = false; // whoever sends it on has not carried it out
      outgoing = redirected(outgoing, status, location);
    }
    return failure(`more than ${MAX_REDIRECTS} redirects`);
  }

  return { execute, [Symbol.asyncDispose]: async () => (await client)?.agent.destroy() };
}
