import { refuse } from "./failure.ts";
import type { Asker } from "./session-owner.ts";

/**
 * For what reaches further than one's own sessions: what the catalogue and the servers hold runs commands and reads secrets on the
 * machines of the suite. The suite's own services have decided for themselves.
 */
export function requireOperator(deed: string, asker: Asker, operators: ReadonlySet<string>): void {
  if (asker === undefined || operators.has(asker)) return;
  const advice = `ask an operator, or name ${JSON.stringify(asker)} in TOOLBUS_OPERATORS`;
  refuse("permission_denied", `${deed} is for operators: ${advice}`, { reason: "PRINCIPAL_NOT_OPERATOR" });
}
