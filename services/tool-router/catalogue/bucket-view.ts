/** A bucket's content in memory, kept by following it: what all instances of the router agree on. */
export class BucketView<T> {
  readonly #entries = new Map<string, { value: T; revision: number }>();
  #version = 0;
  #reached = 0;
  #changed = Promise.withResolvers<void>();
  readonly #listeners = new Set<() => void>();

  /** Grows with each change. */
  get version(): number {
    return this.#version;
  }

  /** How far of the bucket is seen here. */
  get reachedRevision(): number {
    return this.#reached;
  }

  get(key: string): { value: T; revision: number } | undefined {
    return this.#entries.get(key);
  }

  /** By key. */
  get entries(): [string, { value: T; revision: number }][] {
    return [...this.#entries].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** A change of the bucket, in its order; an undefined value is a removal. */
  apply(key: string, revision: number, value: T | undefined): void {
    if (value === undefined) this.#entries.delete(key);
    else this.#entries.set(key, { value, revision });
    this.#version += 1;
    this.skip(revision);
  }

  /** The bucket has come so far, with or without a change of this view. */
  skip(revision: number): void {
    this.#reached = Math.max(this.#reached, revision);
    const waiting = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    waiting.resolve();
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls the listener at each change until it is disposed. */
  listen(listener: () => void): Disposable {
    const own = () => listener();
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  /** Resolves at the next change. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Waits until everything up to a revision is seen here. */
  async reached(revision: number): Promise<void> {
    while (this.#reached < revision) await this.#changed.promise;
  }
}
