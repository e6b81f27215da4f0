import { type ContextValues, createContextValues } from "@connectrpc/connect";
import { type Caller, callerKey } from "#runtime/rpc/identity.ts";

/** The options of a call that a principal makes, as a gateway would pass it on, by a bus that may speak for everybody. */
export function asPrincipal(principal: string, { isOperator = false } = {}): { contextValues: ContextValues } {
  return asCaller({ principal, isOperator });
}

export function asCaller(caller: Caller): { contextValues: ContextValues } {
  return { contextValues: createContextValues().set(callerKey, caller) };
}

/** The same for a principal that is an operator. */
export function asOperator(principal: string): ReturnType<typeof asPrincipal> {
  return asPrincipal(principal, { isOperator: true });
}
