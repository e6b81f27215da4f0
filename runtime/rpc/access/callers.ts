import type { Interceptor } from "@connectrpc/connect";
import { observedMessages } from "../../telemetry/observed-messages.ts";
import { type Caller, callerKey, currentPrincipal, withPrincipal } from "../identity.ts";
import type { Issuer } from "./tokens/issuer.ts";
import type { Verify } from "./tokens/verifier.ts";

/** Proves who asks, on the bus: a token that the asking service has signed for the one that is asked. */
export const IDENTITY_HEADER = "toolbus-identity";

/** Who asks, for calls that do not say it themselves; undefined is nobody. */
export type WhoAsks = () => Caller | undefined;

export interface CallerSenderOptions {
  readonly issuer: Issuer;
  /** Whom its calls ask, by name on the bus. */
  readonly audience: string;
  /** The service itself unless told, on behalf of the principal whose call is being served. */
  readonly caller?: WhoAsks | undefined;
}

/** Client side: a call that nobody makes goes without a token. */
export function createCallerSender({ issuer, audience, caller = asService(issuer) }: CallerSenderOptions): Interceptor {
  return (next) => (request) => {
    const asking = request.contextValues.get(callerKey) ?? caller();
    if (asking === undefined || (asking.principal === undefined && asking.service === undefined)) return next(request);
    const token = issuer.tokenFor(asking, audience);
    const send = (text: string) => {
      request.header.set(IDENTITY_HEADER, text);
      return next(request);
    };
    return typeof token === "string" ? send(token) : token.then(send);
  };
}

function asService({ name: service }: Issuer): WhoAsks {
  const itself: Caller = { service, isOperator: false };
  return () => {
    const principal = currentPrincipal();
    return principal === undefined ? itself : { principal, service, isOperator: false };
  };
}

/**
 * For whom a call is, as its token says before anybody has verified it; empty when it says nothing. It serves to share things out among
 * calls, and nothing else: who reaches this bus is a service, and what it may ask is decided by the verified token. `itself`: for whom it
 * is where a service asks by itself; that service, unless told.
 */
export function claimedPrincipal(header: Headers, itself?: string): string {
  const [, payload = ""] = (header.get(IDENTITY_HEADER) ?? "").split(".");
  try {
    const { sub, svc }: { sub?: unknown; svc?: unknown } = JSON.parse(Buffer.from(payload, "base64url").toString());
    return String(sub ?? itself ?? svc ?? "");
  } catch {
    return itself ?? "";
  }
}

/** Server side: who asks is who the token says, and the calls that a handler makes go on on behalf of its principal. */
export function createCallerReceiver(verify: Verify): Interceptor {
  return (next) => (request) => {
    const token = request.header.get(IDENTITY_HEADER);
    if (token === null) return next(request);
    const serve = (caller: Caller) => {
      request.contextValues.set(callerKey, caller);
      const { principal } = caller;
      if (principal === undefined) return next(request);
      return onBehalf(
        () => next(request),
        (work) => withPrincipal(principal, work),
      );
    };
    const caller = verify(token);
    return caller instanceof Promise ? caller.then(serve) : serve(caller);
  };
}

async function onBehalf(call: () => ReturnType<Next>, step: <R>(work: () => R) => R): ReturnType<Next> {
  const response = await step(call);
  return response.stream ? { ...response, message: observedMessages(response.message, { step }) } : response;
}

type Next = Parameters<Interceptor>[0];
