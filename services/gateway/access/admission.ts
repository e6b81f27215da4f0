import type { DescMethod } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { requireAccess, requireWholeKey } from "#runtime/rpc/access/rules.ts";
import { type HttpRequest, type HttpResponse, senderOf, sentBy, sinkOf } from "#runtime/rpc/http/messages.ts";
import type { Admit } from "#runtime/rpc/http/server.ts";
import { endWhenSilent } from "#runtime/rpc/http/sockets/liveness.ts";
import { type Caller, callerKey, principalOf } from "#runtime/rpc/identity.ts";
import { type Authenticate, bearsCallKey } from "./authentication/authentication.ts";
import { isOpen } from "./open-services.ts";
import type { ContentionLimiter } from "./shares/contention-limiter.ts";
import type { Shares } from "./shares/shares.ts";
import type { UnreadAnswers } from "./shares/unread-answers.ts";

/** What is entered: a method, or a door that is none, with what a request of it counts as. */
type Entered = DescMethod | "calls" | "streams";

/**
 * Says who sends a request, which counts as one of its principal's until it is answered; refused where there is no room for it, where
 * the method's rule does not allow it, and for a key of one call, unless the method takes it.
 */
export type Enter = (request: HttpRequest, response: HttpResponse, entered: Entered) => Promise<Caller>;

export function createEnter(
  authenticate: Authenticate,
  { shares, limiter, unread }: { shares: Shares; limiter: ContentionLimiter; unread: UnreadAnswers },
): Enter {
  return async (request, response, entered) => {
    const caller = await Promise.try(authenticate, request).catch((error: unknown) => challenge(response, error));
    const principal = principalOf(caller);
    sentBy(request, principal);
    const whenAnswered = atEndOf(response);
    whenAnswered(shares.take(principal, kindOf(entered)));
    whenAnswered(unread.track(principal, response));
    if (typeof entered === "string") requireWholeKey(THIS_DOOR, caller);
    else requireAccess(entered, caller);
    whenAnswered(await limiter.acquire(principal));
    return caller;
  };
}

/** RFC 9110, 15.5.2. */
function challenge(response: HttpResponse, error: unknown): never {
  const isUnknown = failureFromConnectError(error).code === "unauthenticated";
  if (isUnknown && !response.headersSent) response.setHeader("www-authenticate", "Bearer");
  throw error;
}

/** Also if that has come. */
function atEndOf(response: HttpResponse): (end: () => void) => void {
  const sink = sinkOf(response);
  return (end) => void (sink.destroyed ? end() : sink.once("close", end));
}

const THIS_DOOR = "this path";

function kindOf(entered: Entered): "calls" | "streams" {
  if (typeof entered === "string") return entered;
  return entered.methodKind === "unary" ? "calls" : "streams";
}

/** One more request of a connection that was let in: its credentials must hold still, and it counts as a call until it is disposed. */
export type EnterAgain = (request: HttpRequest) => Promise<Disposable & { readonly caller: Caller }>;

export function createEnterAgain(authenticate: Authenticate, shares: Shares, limiter: ContentionLimiter): EnterAgain {
  return async (request) => {
    const caller = await authenticate(request);
    requireWholeKey(THIS_DOOR, caller);
    const principal = principalOf(caller);
    const held = new DisposableStack();
    held.defer(shares.take(principal, "calls"));
    held.defer(await limiter.acquire(principal));
    return { caller, [Symbol.dispose]: () => held.dispose() };
  };
}

/**
 * Lets a call in by its head: with its caller's identity, if its principal has room and the method's rule allows it, or without one
 * where none is needed. There, an address has the share of a principal, and waits for its turn: no principal waits because of it.
 */
export function createAdmission(enter: Enter, shares: Shares, strangers: ContentionLimiter): Admit {
  return async (request, method, response) => {
    const values = createContextValues();
    if (isOpen(method.parent) && !bearsCallKey(request)) {
      const stranger = senderOf(request);
      const whenAnswered = atEndOf(response);
      whenAnswered(shares.take(stranger, kindOf(method)));
      whenAnswered(await strangers.acquire(stranger));
      return values;
    }
    const caller = await enter(request, response, method);
    if (method === CallerService.method.watchCaller) sinkOf(response).once("close", endWhenSilent(request)); // CTR-7
    return values.set(callerKey, caller);
  };
}
