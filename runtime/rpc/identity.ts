import { AsyncLocalStorage } from "node:async_hooks";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Taker } from "../collections/turns/own-turn.ts";

/** Who calls when nobody was authenticated: everyone on this machine. */
export const LOCAL_PRINCIPAL = "local";

/** The role of those who may change what all sessions use, and see what all of them do. */
export const OPERATOR_ROLE = "operator";

/** Who makes a request. Whoever is neither a principal nor a service may do nothing that has a rule. */
export interface Caller {
  /** On whose behalf; absent for what a service does by itself. */
  readonly principal?: string;
  /** The service of the suite that makes the request, by itself or on behalf of the principal; absent for one from outside. */
  readonly service?: string;
  readonly isOperator: boolean;
  /** The key by which it came, if that is for one call alone: `access/tokens/call-keys.ts`. */
  readonly callKey?: CallKey;
}

/** A key of one call, as it is known once it has been verified. */
export interface CallKey {
  /** The one call. */
  readonly callId: string;
  /** Names the key; no secret. */
  readonly id: string;
}

/** For what a service does by itself, without a request. */
export const SELF: Caller = { service: "self", isOperator: false };

/** A principal that is no operator, as records name it. */
export function callerNamed(principal: string): Caller {
  return { principal, isOperator: false };
}

/** Of a request that is served, who makes it, as its token has proven; of one that is made, who asks. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "who calls" });

/** The only way that a handler learns who asks; nobody, when no token says it. */
export function callerOf({ values }: { values: ContextValues }): Caller {
  return values.get(callerKey) ?? NOBODY;
}

const NOBODY: Caller = { isOperator: false };

/** Whether a service asks by itself, which has decided what it may. */
export function isServiceItself({ principal, service }: Caller): boolean {
  return service !== undefined && principal === undefined;
}

/** Whether the caller sees what is configured, and what belongs to all: an operator, and every service. */
export function seesAll({ service, isOperator }: Caller): boolean {
  return isOperator || service !== undefined;
}

/** The principal in whose name something is done and recorded. */
export function principalOf({ principal }: Caller): string {
  return principal ?? LOCAL_PRINCIPAL;
}

/** Whose turn the work of a request is. A service that asks by itself has turns of its own. */
export function takerOf({ values, signal }: { values: ContextValues; signal: AbortSignal }): Taker {
  const caller = callerOf({ values });
  return { sender: isServiceItself(caller) ? `service ${caller.service}` : principalOf(caller), signal };
}

const storage = new AsyncLocalStorage<string>();

/** On whose behalf the running work goes on; undefined outside of a call. */
export function currentPrincipal(): string | undefined {
  return storage.getStore();
}

/** Does the work, and the calls that it makes, on behalf of the principal: for work that no request of theirs carries. */
export function withPrincipal<T>(principal: string, work: () => T): T {
  return storage.run(principal, work);
}

/** Does the work on nobody's behalf: for what a call starts, and what outlives it. */
export function withoutPrincipal<T>(work: () => T): T {
  return storage.exit(work);
}
