import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import type { ReadTrustList } from "#runtime/bus/credentials/trust/trust-list.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Caller } from "../../identity.ts";
import { createSigner } from "./issuer.ts";
import { readSigned } from "./verifier.ts";

/*
 * A key of one call lets somebody who has no other key read and answer one question of a tool.
 *
 * call-key-1  It names a principal, a call and an end, and is signed by the service that made it, with its key of the bus, as identities
 *     are. Whoever has it can read what it names and change nothing of it. Nothing is stored.
 * call-key-2  Methods that declare it (`takes_call_key`) take it, for the call that their request names. All else refuses it: other
 *     methods, public ones too, and the gateway's doors that are no methods. `rules.ts` decides that, at the gateway, where the key comes
 *     in, and at the service, which learns of it by the gateway's token.
 * call-key-3  It may nothing that its principal may not now: the service that answers asks that anew each time. It is no operator's.
 * call-key-4  It is of no use once its call has its answer, or takes none any more; and it makes no further keys (call-key-2).
 * call-key-5  It is no identity on the bus, since no service has the name that it is for; and no identity is such a key.
 * call-key-6  Where all principals have keys of the gateway, it ends with those of its principal. It counts as a request of its principal.
 */

export interface CallKeyFacts {
  readonly principal: string;
  readonly callId: string;
  /** Names the key, no secret. */
  readonly id: string;
  readonly expireMs: number;
}

/** call-key-5: the name of no service. */
const AUDIENCE = "call keys";

/** By which a key is told from others, and from tokens of an issuer, before anything of it is believed. */
const PREFIX = "call.";

export type SignCallKey = (facts: CallKeyFacts) => Promise<string>;

/** call-key-1 */
export function createCallKeySigner(login: BusLogin): SignCallKey {
  const sign = createSigner(login);
  return async ({ principal, callId, id, expireMs }) =>
    PREFIX + (await sign({ audience: AUDIENCE, expireMs, subject: principal, claims: { call: callId, jti: id } }));
}

export function isCallKey(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Who comes by such a key. Throws `unauthenticated` for one that does not hold, and says why. */
export type ReadCallKey = (key: string) => Promise<Caller>;

export interface CallKeyReaderOptions {
  readonly trust: ReadTrustList;
  /** call-key-6 */
  readonly isKnown: (principal: string) => boolean;
  readonly now?: () => number;
}

export function createCallKeyReader({ trust, isKnown, now = Date.now }: CallKeyReaderOptions): ReadCallKey {
  return async (text) => {
    const signed = { audience: AUDIENCE, trust, now, refuse: refuseKey };
    const { payload, key } = await readSigned(text.slice(PREFIX.length), signed);
    const { sub: principal, call, jti: id } = payload;
    if (key.speaksFor === "itself") refuseKey(`is signed by ${key.name}, which cannot speak for principals`);
    if (!principal || typeof call !== "string" || !call || !id) return refuseKey("names no principal or no call");
    if (!isKnown(principal)) refuseKey("is of a principal that has no key here any more");
    return { principal, isOperator: false, callKey: { callId: call, id } };
  };
}

function refuseKey(fault: string, cause?: unknown): never {
  const options = { reason: "CREDENTIALS_INVALID" as const, cause };
  return refuse("unauthenticated", `the key of one call ${fault}: ask for another one`, options);
}
