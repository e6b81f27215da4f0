import { createContextValues } from "@connectrpc/connect";
import type { Admit } from "#runtime/rpc/http/server.ts";
import type { Authenticate } from "./authentication.ts";
import { callerKey } from "./caller-key.ts";
import { isOpen } from "./open-services.ts";

/** Lets a call in by its head: with its caller's identity, or without one where none is needed. */
export function createAdmission(authenticate: Authenticate): Admit {
  return (request, method) => {
    const values = createContextValues();
    return isOpen(method.parent) ? values : values.set(callerKey, authenticate(request));
  };
}
