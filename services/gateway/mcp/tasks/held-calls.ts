import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import type { Outcome } from "../calls/call.ts";
import type { Notify } from "../calls/notifications.ts";

/** Calls that this gateway waits for though no request does, so that one whose router is lost goes on at another. */
export class HeldCalls {
  readonly #ends = new TransientMap<Promise<Outcome>>();
  readonly #listeners = new TransientMap<Set<Notify>>();

  /** Begins to wait for the call, unless this gateway does already. Settles as the waiting does. */
  hold(callId: string, follow: (notify: Notify) => Promise<Outcome>): Promise<Outcome> {
    const standing = this.#ends.get(callId);
    if (standing) return standing;
    const end = follow((event) => this.#notify(callId, event)).finally(() => this.#ends.delete(callId));
    end.catch(() => {}); // whoever asks for the task reads the record
    this.#ends.set(callId, end);
    return end;
  }

  /** Is notified of what happens in the call while it is held here. */
  listen(callId: string, notify: Notify): Disposable {
    const listeners = this.#listeners.get(callId) ?? new Set();
    this.#listeners.set(callId, listeners.add(notify));
    return {
      [Symbol.dispose]: () => {
        listeners.delete(notify);
        if (listeners.size === 0) this.#listeners.delete(callId);
      },
    };
  }

  async #notify(callId: string, event: Parameters<Notify>[0]): Promise<void> {
    const listeners = [...(this.#listeners.get(callId) ?? [])];
    await Promise.all(listeners.map((notify) => notify(event).catch(() => {}))); // who has left hears nothing
  }
}
