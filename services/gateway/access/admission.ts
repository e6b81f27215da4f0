import { createContextValues } from "@connectrpc/connect";
import { requireAccess } from "#runtime/rpc/access/rules.ts";
import { sinkOf } from "#runtime/rpc/http/messages.ts";
import type { Admit } from "#runtime/rpc/http/server.ts";
import { callerKey, principalOf } from "#runtime/rpc/identity.ts";
import type { Authenticate } from "./authentication/authentication.ts";
import { isOpen } from "./open-services.ts";
import type { Shares } from "./shares.ts";

/**
 * Lets a call in by its head: with its caller's identity, if the method's rule allows it and its principal has room, or without one
 * where none is needed.
 */
export function createAdmission(authenticate: Authenticate, shares: Shares): Admit {
  return async (request, method, response) => {
    const values = createContextValues();
    if (isOpen(method.parent)) return values;
    const caller = await authenticate(request);
    requireAccess(method, caller);
    const sink = sinkOf(response);
    const leave = shares.take(principalOf(caller), method.methodKind === "unary" ? "calls" : "streams");
    if (sink.destroyed) leave();
    else sink.once("close", leave);
    return values.set(callerKey, caller);
  };
}
