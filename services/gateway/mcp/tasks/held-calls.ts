import { TransientMap } from "#runtime/collections/transient-map.ts";
import type { Outcome } from "../calls/call.ts";
import type { Tell } from "../calls/telling.ts";

/** Calls that this gateway waits for though no request does, so that one whose router is lost goes on at another. */
export class HeldCalls {
  readonly #ends = new TransientMap<Promise<Outcome>>();
  readonly #listeners = new TransientMap<Set<Tell>>();

  /** Begins to wait for the call, unless this gateway does already. Settles as the waiting does. */
  hold(callId: string, follow: (tell: Tell) => Promise<Outcome>): Promise<Outcome> {
    const standing = this.#ends.get(callId);
    if (standing) return standing;
    const end = follow((event) => this.#tell(callId, event)).finally(() => this.#ends.delete(callId));
    end.catch(() => {}); // whoever asks for the task reads the record
    this.#ends.set(callId, end);
    return end;
  }

  /** Told of what the call tells while it is held here. */
  listen(callId: string, tell: Tell): Disposable {
    const listeners = this.#listeners.get(callId) ?? new Set();
    this.#listeners.set(callId, listeners.add(tell));
    return {
      [Symbol.dispose]: () => {
        listeners.delete(tell);
        if (listeners.size === 0) this.#listeners.delete(callId);
      },
    };
  }

  async #tell(callId: string, event: Parameters<Tell>[0]): Promise<void> {
    const listeners = [...(this.#listeners.get(callId) ?? [])];
    await Promise.all(listeners.map((tell) => tell(event).catch(() => {}))); // who has left hears nothing
  }
}
