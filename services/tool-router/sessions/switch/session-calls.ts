import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";

/** A call's presence in its session; its signal aborts as the call's own does, and when the session cannot wait for it any longer. */
export interface TrackedCall extends Disposable {
  readonly signal: AbortSignal;
}

interface Entry {
  readonly callId: string;
  readonly ending: Ending;
}

/**
 * The calls of each session that are under way in this router. A call is tracked before its session is read: so a router that hears
 * of a switch finds every call that was admitted before it.
 */
export class SessionCalls {
  readonly #bySession = new TransientMap<Set<Entry>>();
  readonly #emptied = new Map<string, PromiseWithResolvers<void>>();

  track(sessionId: string, callId: string, callSignal?: AbortSignal): TrackedCall {
    const entry: Entry = { callId, ending: openEnding(callSignal) };
    const others = this.#bySession.get(sessionId);
    if (others === undefined) this.#bySession.set(sessionId, new Set([entry]));
    else others.add(entry);
    return { signal: entry.ending.signal, [Symbol.dispose]: () => this.#leave(sessionId, entry) };
  }

  callIds(sessionId: string): string[] {
    return [...(this.#bySession.get(sessionId) ?? [])].map(({ callId }) => callId);
  }

  /** Resolves when the session has no call under way. */
  async emptied(sessionId: string): Promise<void> {
    if (!this.#bySession.has(sessionId)) return;
    const waiting = this.#emptied.get(sessionId) ?? Promise.withResolvers<void>();
    this.#emptied.set(sessionId, waiting);
    await waiting.promise;
  }

  /** Cancels those of the calls that are still under way. */
  cancel(sessionId: string, callIds: readonly string[], reason: unknown): void {
    for (const { callId, ending } of [...(this.#bySession.get(sessionId) ?? [])]) {
      if (callIds.includes(callId)) ending.end(reason);
    }
  }

  #leave(sessionId: string, entry: Entry): void {
    entry.ending[Symbol.dispose]();
    const others = this.#bySession.get(sessionId);
    others?.delete(entry);
    if (others?.size !== 0) return;
    this.#bySession.delete(sessionId);
    this.#emptied.get(sessionId)?.resolve();
    this.#emptied.delete(sessionId);
  }
}
