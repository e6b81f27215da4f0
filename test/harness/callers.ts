import { writeCaller } from "#runtime/rpc/identity.ts";

/** The options of a call that a principal makes, as a gateway would pass it on. */
export function asPrincipal(principal: string, { isOperator = false } = {}): { headers: Record<string, string> } {
  const headers = new Headers();
  writeCaller(headers, { principal, isOperator });
  return { headers: Object.fromEntries(headers) };
}

/** The same for a principal that is an operator. */
export function asOperator(principal: string): ReturnType<typeof asPrincipal> {
  return asPrincipal(principal, { isOperator: true });
}
