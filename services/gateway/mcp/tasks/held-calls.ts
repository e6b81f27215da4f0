import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import type { Outcome } from "../calls/call.ts";
import type { Notify } from "../calls/notifications.ts";

/** Calls that this gateway waits for though no request does, so that one whose router is lost goes on at another. */
export class HeldCalls {
  readonly #ends = new TransientMap<Promise<Outcome>>();
  readonly #listeners = new KeyedListeners<Parameters<Notify>>();

  /** Begins to wait for the call, unless this gateway does already. Settles as the waiting does. */
  hold(callId: string, follow: (notify: Notify) => Promise<Outcome>): Promise<Outcome> {
    const standing = this.#ends.get(callId);
    if (standing) return standing;
    const notify: Notify = async (event) => this.#listeners.notify(callId, event);
    const end = follow(notify).finally(() => this.#ends.delete(callId));
    end.catch(() => {}); // whoever asks for the task reads the record
    this.#ends.set(callId, end);
    return end;
  }

  /** Is notified of what happens in the call while it is held here. */
  listen(callId: string, notify: Notify): Disposable {
    return this.#listeners.add(callId, (event) => void notify(event).catch(() => {})); // who has left hears nothing
  }
}
