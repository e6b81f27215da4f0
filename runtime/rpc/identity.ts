import { AsyncLocalStorage } from "node:async_hooks";
import type { Interceptor } from "@connectrpc/connect";
import { observedMessages } from "../telemetry/observed-messages.ts";

/** Set by the gateway, which takes it off whatever comes from outside. */
export const PRINCIPAL_HEADER = "toolbus-principal";

/** Who calls when nobody was authenticated: everyone on this machine. */
export const LOCAL_PRINCIPAL = "local";

/**
 * Names the service that asks by itself, though on somebody's behalf. Like the principal, the gateway takes it off whatever comes
 * from outside.
 */
export const SERVICE_HEADER = "toolbus-service";

/** Whether one of the suite's own services says so, whoever it works for. */
export function isFromService({ requestHeader }: { requestHeader: Headers }): boolean {
  return requestHeader.has(SERVICE_HEADER) || askerOf({ requestHeader }) === undefined;
}

const storage = new AsyncLocalStorage<string>();

/** On whose behalf a request is made. */
export function principalOf(headers: { get(name: string): string | null }): string {
  const text = headers.get(PRINCIPAL_HEADER);
  return text ? principalFromHeader(text) : LOCAL_PRINCIPAL;
}

/** The gateway names a principal with whatever comes from outside; who names none is one of the suite's own services. */
export function askerOf({ requestHeader }: { requestHeader: Headers }): string | undefined {
  return requestHeader.get(PRINCIPAL_HEADER) ? principalOf(requestHeader) : undefined;
}

/** Names the principal to the next service; a name with characters that no header can hold is percent-encoded. */
export function writePrincipal(headers: { set(name: string, value: string): void }, principal: string): void {
  headers.set(PRINCIPAL_HEADER, /^[\x21-\x24\x26-\x7e]+$/.test(principal) ? principal : encodeURIComponent(principal));
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

/** Client side: names the principal, unless the caller has named one. */
export function createPrincipalSender(identity: () => string | undefined = currentPrincipal): Interceptor {
  return (next) => (request) => {
    const principal = identity();
    if (principal !== undefined && !request.header.has(PRINCIPAL_HEADER)) writePrincipal(request.header, principal);
    return next(request);
  };
}
