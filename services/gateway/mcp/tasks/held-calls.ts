import { TransientMap } from "#runtime/collections/transient-map.ts";
import type { Outcome } from "../calls/call.ts";

/** Calls that this gateway waits for though no request does, so that one whose router is lost goes on at another. */
export class HeldCalls {
  readonly #ends = new TransientMap<Promise<Outcome>>();

  /** Begins to wait for the call, unless this gateway does already. Settles as the waiting does. */
  hold(callId: string, follow: () => Promise<Outcome>): Promise<Outcome> {
    const standing = this.#ends.get(callId);
    if (standing) return standing;
    const end = follow().finally(() => this.#ends.delete(callId));
    end.catch(() => {}); // whoever asks for the task reads the record
    this.#ends.set(callId, end);
    return end;
  }
}
