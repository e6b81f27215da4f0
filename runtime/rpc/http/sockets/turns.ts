import type { HttpRequest } from "../messages.ts";

/** What may begin in one turn of the event loop; clients that wait for answers do not send as much. */
const MOST_A_TURN = 16;

type Work = () => void;

/**
 * Spreads what comes at once over turns of the event loop, and gives each connection its turn: a thousand requests in one packet,
 * or the ends of a thousand when their connection breaks, hold up what others have asked by a few of them. What belongs to one
 * connection begins in the order in which it came.
 */
export class Turns {
  readonly #waiting = new Map<object, Work[]>();
  #begun = 0;
  #next: NodeJS.Immediate | undefined;

  /** At once, unless much has begun in this turn. */
  begin(connection: object, work: Work): void {
    const before = this.#waiting.get(connection);
    this.#next ??= setImmediate(() => this.#turn());
    if (before) before.push(work);
    else if (this.#begun >= MOST_A_TURN) this.#waiting.set(connection, [work]);
    else {
      this.#begun += 1;
      work();
    }
  }

  #turn(): void {
    this.#begun = 0;
    this.#next = this.#waiting.size > 0 ? setImmediate(() => this.#turn()) : undefined;
    for (const [connection, works] of this.#waiting) {
      if (this.#begun >= MOST_A_TURN) return;
      this.#begun += 1;
      const work = works.shift();
      this.#waiting.delete(connection);
      if (works.length > 0) this.#waiting.set(connection, works); // the last in the circle
      work?.();
    }
  }
}

/** The event loop is one, whatever runs in it. */
export const turns = new Turns();

/** What its requests have in common, of either version. */
export function connectionOf(request: HttpRequest): object {
  return ("stream" in request ? request.stream.session : undefined) ?? request.socket;
}
