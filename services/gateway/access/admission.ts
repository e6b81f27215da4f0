import { createContextValues } from "@connectrpc/connect";
import { requireAccess } from "#runtime/rpc/access/rules.ts";
import type { Admit } from "#runtime/rpc/http/server.ts";
import type { Authenticate } from "./authentication.ts";
import { callerKey } from "./caller-key.ts";
import { isOpen } from "./open-services.ts";

/** Lets a call in by its head: with its caller's identity, if the method's rule allows it, or without one where none is needed. */
export function createAdmission(authenticate: Authenticate): Admit {
  return async (request, method) => {
    const values = createContextValues();
    if (isOpen(method.parent)) return values;
    const caller = await authenticate(request);
    requireAccess(method, caller);
    return values.set(callerKey, caller);
  };
}
