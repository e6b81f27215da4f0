import { AsyncLocalStorage } from "node:async_hooks";
import type { Interceptor } from "@connectrpc/connect";
import { observedMessages } from "../telemetry/observed-messages.ts";

/** Set by the gateway, which takes it off whatever comes from outside. */
export const PRINCIPAL_HEADER = "toolbus-principal";

/** Who calls when nobody was authenticated: everyone on this machine. */
export const LOCAL_PRINCIPAL = "local";

/** Names the service that makes the request. Like the principal, the gateway takes it off whatever comes from outside. */
export const SERVICE_HEADER = "toolbus-service";

/** What the principal is to the suite, as the gateway has decided: a list with commas. Nobody else may say so. */
export const ROLES_HEADER = "toolbus-roles";

/** The role of those who may change what all sessions use, and see what all of them do. */
export const OPERATOR_ROLE = "operator";

/** Who makes a request. Whoever is neither a principal nor a service may do nothing that has a rule. */
export interface Caller {
  /** On whose behalf; absent for what a service does by itself. */
  readonly principal?: string;
  /** The service of the suite that makes the request, by itself or on behalf of the principal; absent for one from outside. */
  readonly service?: string;
  readonly isOperator: boolean;
}

/** For what a service does by itself, without a request. */
export const SELF: Caller = { service: "self", isOperator: false };

/** A principal that is no operator, as records name it. */
export function callerNamed(principal: string): Caller {
  return { principal, isOperator: false };
}

/** The only way that a handler learns who asks. */
export function callerOf({ requestHeader }: { requestHeader: Headers }): Caller {
  const principal = requestHeader.get(PRINCIPAL_HEADER);
  const service = requestHeader.get(SERVICE_HEADER) ?? (principal ? undefined : UNNAMED_SERVICE);
  const roles = requestHeader.get(ROLES_HEADER)?.split(",") ?? [];
  return {
    ...(principal && { principal: principalFromHeader(principal) }),
    ...(service && { service }),
    isOperator: roles.includes(OPERATOR_ROLE),
  };
}

/** Requests that name nobody come from the suite: whoever reaches the bus belongs to it. */
const UNNAMED_SERVICE = "unnamed";

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

const storage = new AsyncLocalStorage<string>();

/** Names the principal to the next service; a name with characters that no header can hold is percent-encoded. */
export function writePrincipal(headers: { set(name: string, value: string): void }, principal: string): void {
  headers.set(PRINCIPAL_HEADER, /^[\x21-\x24\x26-\x7e]+$/.test(principal) ? principal : encodeURIComponent(principal));
}

/** Names who asks to the next service, for a gateway, which has found out. */
export function writeCaller(headers: Headers, { principal, isOperator }: Caller): void {
  if (principal !== undefined) writePrincipal(headers, principal);
  if (isOperator) headers.set(ROLES_HEADER, OPERATOR_ROLE);
}

function principalFromHeader(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not encoded by us: taken as it stands
  }
}

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

/** Server side: the calls that a handler makes go on on behalf of its caller. */
export function createPrincipalReceiver(): Interceptor {
  return (next) => (request) => {
    const text = request.header.get(PRINCIPAL_HEADER);
    if (!text) return next(request);
    const principal = principalFromHeader(text);
    return onBehalf(
      () => next(request),
      (work) => storage.run(principal, work),
    );
  };
}

async function onBehalf(call: () => ReturnType<Next>, step: <R>(work: () => R) => R): ReturnType<Next> {
  const response = await step(call);
  return response.stream ? { ...response, message: observedMessages(response.message, { step }) } : response;
}

type Next = Parameters<Interceptor>[0];

export interface SenderOptions {
  /** On whose behalf to call; of the call that is being served unless told. */
  identity?: () => string | undefined;
  /** The service that calls; absent where requests are passed on from outside. */
  service?: string;
}

/** Client side: names the principal, unless the caller has named one, and the service. */
export function createCallerSender({ identity = currentPrincipal, service }: SenderOptions = {}): Interceptor {
  return (next) => (request) => {
    const principal = identity();
    if (principal !== undefined && !request.header.has(PRINCIPAL_HEADER)) writePrincipal(request.header, principal);
    if (service !== undefined) request.header.set(SERVICE_HEADER, service);
    return next(request);
  };
}
