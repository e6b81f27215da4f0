import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { Rule, rule, takes_call_key } from "#gen/toolbus/access/v1/access_pb.ts";
import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import { connectErrorFromUnknown } from "../../failure/connect.ts";
import { refuse } from "../../failure/failure.ts";
import { requireOperator } from "../../failure/operator.ts";
import { type Caller, callerOf } from "../identity.ts";

const rules = new WeakMap<DescMethod, Rule>();

/** Who may call a method. Those of other contracts, such as health and reflection, are open. */
export function ruleOf(method: DescMethod): Rule {
  return getOrInsertComputed(rules, method, () => (isOwn(method) ? getOption(method, rule) : Rule.PUBLIC));
}

function isOwn({ parent }: DescMethod): boolean {
  return parent.typeName.startsWith("toolbus.");
}

/** call-key-2 of `tokens/call-keys.ts`: whether a key of one call may call the method. Only a request that is one message can name its call. */
export function takesCallKey(method: DescMethod): boolean {
  return isOwn(method) && method.methodKind === "unary" && getOption(method, takes_call_key);
}

/** Refuses a key of one call what is not said to be for it: `asked` is no method, or one of others. */
export function requireWholeKey(asked: string, { callKey }: Caller): void {
  if (callKey === undefined) return;
  const text = `${asked} is not for a key of one call: it reads and answers call ${callKey.callId}, and does nothing else`;
  refuse("permission_denied", text, { reason: "CALL_KEY_LIMITED", metadata: { call_id: callKey.callId } });
}

/** Refuses a key of one call a request that names another one. */
function requireOwnCall(method: DescMethod, caller: Caller, message: object): void {
  const named = "callId" in message ? message.callId : undefined;
  if (caller.callKey !== undefined && named !== caller.callKey.callId)
    requireWholeKey(`${method.parent.name}.${method.name} of another call`, caller);
}

/** Refuses what the method's rule does not let the caller do. Which sessions are whose is for the handlers. */
export function requireAccess(method: DescMethod, caller: Caller): void {
  if (caller.callKey !== undefined && !takesCallKey(method))
    requireWholeKey(`${method.parent.name}.${method.name}`, caller);
  const asked = ruleOf(method);
  if (asked === Rule.PUBLIC) return;
  const name = `${method.parent.name}.${method.name}`;
  if (asked === Rule.UNSPECIFIED) refuse("internal", `${name} has no rule: nobody may call it`, { reason: "INTERNAL" });
  if (caller.service !== undefined) return;
  if (caller.principal === undefined)
    refuse("unauthenticated", `${name} is for callers that say who they are`, { reason: "CREDENTIALS_INVALID" });
  if (asked === Rule.OPERATOR) requireOperator(name, caller);
  if (asked === Rule.SERVICE)
    refuse("permission_denied", `${name} is called by services of the suite alone`, { reason: "CALLER_NOT_SERVICE" });
}

/** Holds every method to its rule: where it is served, and where a gateway passes it on. */
export function createAccess(): Interceptor {
  return (next) => (request) => {
    const caller = callerOf({ values: request.contextValues });
    try {
      requireAccess(request.method, caller);
      if (!request.stream) requireOwnCall(request.method, caller, request.message);
    } catch (error) {
      throw connectErrorFromUnknown(error); // a client would make an unknown error of a refusal
    }
    return next(request);
  };
}
