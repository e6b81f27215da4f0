import { type Caller, isServiceItself, principalOf } from "../rpc/identity.ts";
import { refuse } from "./failure.ts";

/**
 * For what reaches further than one's own sessions: what the catalogue and the servers hold runs commands and reads secrets on the
 * machines of the suite.
 */
export function requireOperator(deed: string, caller: Caller): void {
  if (caller.isOperator || isServiceItself(caller)) return;
  const advice = `ask an operator, or make ${JSON.stringify(principalOf(caller))} one: by TOOLBUS_OPERATORS, or by the role in a token`;
  refuse("permission_denied", `${deed} is for operators: ${advice}`, { reason: "PRINCIPAL_NOT_OPERATOR" });
}
