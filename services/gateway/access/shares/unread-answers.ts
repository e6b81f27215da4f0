import type { Writable } from "node:stream";

const LOOK_EVERY_MS = 250;

/** SEC-6: what the clients of one principal leave unread of their answers, which this process holds until they read it. */
export class UnreadAnswers {
  readonly #maxBytes: number;
  readonly #open = new Map<string, Set<Writable>>();

  /** `maxBytes`: of all answers to a principal. Where it is more, those are cut of which most is left. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts an answer until what it gives is called. */
  track(principal: string, sink: Writable): () => void {
    const own = this.#open.get(principal);
    if (own === undefined) this.#follow(principal, new Set([sink]));
    else own.add(sink);
    return () => void this.#open.get(principal)?.delete(sink);
  }

  #follow(principal: string, own: Set<Writable>): void {
    this.#open.set(principal, own);
    const looking = setInterval(() => {
      if (own.size === 0) {
        clearInterval(looking);
        this.#open.delete(principal);
      }
      let bytes = 0;
      for (const { writableLength } of own) bytes += writableLength;
      if (bytes <= this.#maxBytes) return;
      for (const sink of [...own].sort((one, other) => other.writableLength - one.writableLength)) {
        if (bytes <= this.#maxBytes) return;
        bytes -= sink.writableLength;
        sink.destroy();
      }
    }, LOOK_EVERY_MS).unref();
  }
}
