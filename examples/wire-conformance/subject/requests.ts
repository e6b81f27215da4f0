import type { Bytes } from "./echo.ts";

/** The requests of a call, which a runner adds to as it likes. */
export class Requests implements AsyncIterable<Bytes> {
  readonly #waiting: Bytes[];
  #isEnded = false;
  #wake: () => void = () => {};

  constructor(first: Bytes[]) {
    this.#waiting = first;
  }

  push(request: Bytes): void {
    this.#waiting.push(request);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Bytes> {
    for (;;) {
      const request = this.#waiting.shift();
      if (request) yield request;
      else if (this.#isEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
