/** What is being closed, by key: a key is claimed again when nothing of it is left. */
export class Closings {
  readonly #running = new Map<string, Promise<void>>();

  /** Also waits for an earlier closing of the key; rejects when this one fails. */
  add(key: string, closing: Promise<void>): Promise<void> {
    const earlier = (this.#running.get(key) ?? Promise.resolve()).catch(() => {}); // whoever closed that one was told
    const tracked = Promise.all([closing, earlier]).then(() => {});
    this.#running.set(key, tracked);
    const clear = () => {
      if (this.#running.get(key) === tracked) this.#running.delete(key);
    };
    tracked.then(clear, clear);
    return tracked;
  }

  /** Resolves when nothing of the key is being closed; rejects when its closing fails. */
  async ended(key: string): Promise<void> {
    await this.#running.get(key);
  }
}
