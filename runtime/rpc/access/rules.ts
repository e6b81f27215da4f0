import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { Rule, rule } from "#gen/toolbus/access/v1/access_pb.ts";
import { refuse } from "../../failure/failure.ts";
import { requireOperator } from "../../failure/operator.ts";
import { type Caller, callerOf } from "../identity.ts";

const rules = new WeakMap<DescMethod, Rule>();

/** Who may call a method. Those of other contracts, such as health and reflection, are open. */
export function ruleOf(method: DescMethod): Rule {
  const known = rules.get(method);
  if (known !== undefined) return known;
  const found = isOwn(method) ? getOption(method, rule) : Rule.PUBLIC;
  rules.set(method, found);
  return found;
}

function isOwn({ parent }: DescMethod): boolean {
  return parent.typeName.startsWith("toolbus.");
}

/** Refuses what the method's rule does not let the caller do. Which sessions are whose is for the handlers. */
export function requireAccess(method: DescMethod, caller: Caller): void {
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

/** Server side: holds every method to its rule. */
export function createAccess(): Interceptor {
  return (next) => (request) => {
    requireAccess(request.method, callerOf({ values: request.contextValues }));
    return next(request);
  };
}
