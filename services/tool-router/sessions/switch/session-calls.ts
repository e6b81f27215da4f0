import { TransientMap } from "#runtime/collections/transient-map.ts";

/** A call's presence in its session; its signal aborts when the session cannot wait for it any longer. */
export interface Stay extends Disposable {
  readonly signal: AbortSignal;
}

interface Present {
  readonly callId: string;
  readonly control: AbortController;
}

/**
 * The calls of each session that are under way in this router. A call enters before its session is read: so whoever hears
 * of a switch finds every call that was admitted before it.
 */
export class SessionCalls {
  readonly #present = new TransientMap<Set<Present>>();
  readonly #emptied = new Map<string, PromiseWithResolvers<void>>();

  enter(sessionId: string, callId: string): Stay {
    const present: Present = { callId, control: new AbortController() };
    const others = this.#present.get(sessionId);
    if (others === undefined) this.#present.set(sessionId, new Set([present]));
    else others.add(present);
    return { signal: present.control.signal, [Symbol.dispose]: () => this.#leave(sessionId, present) };
  }

  callIds(sessionId: string): string[] {
    return [...(this.#present.get(sessionId) ?? [])].map(({ callId }) => callId);
  }

  /** Resolves when the session has no call under way. */
  async emptied(sessionId: string): Promise<void> {
    if (!this.#present.has(sessionId)) return;
    const waiting = this.#emptied.get(sessionId) ?? Promise.withResolvers<void>();
    this.#emptied.set(sessionId, waiting);
    await waiting.promise;
  }

  /** Cancels those of the calls that are still under way. */
  cancel(sessionId: string, callIds: readonly string[], reason: unknown): void {
    for (const { callId, control } of [...(this.#present.get(sessionId) ?? [])]) {
      if (callIds.includes(callId)) control.abort(reason);
    }
  }

  #leave(sessionId: string, present: Present): void {
    const others = this.#present.get(sessionId);
    others?.delete(present);
    if (others?.size !== 0) return;
    this.#present.delete(sessionId);
    this.#emptied.get(sessionId)?.resolve();
    this.#emptied.delete(sessionId);
  }
}
