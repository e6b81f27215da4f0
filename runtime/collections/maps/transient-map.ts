/**
 * A map whose entries come and go all the time, such as calls under way by their id.
 *
 * V8 gives a `Map` that grows or shrinks a new table, and links the one before to it. Once the collector has moved a table to the
 * old generation, all that follow are kept until its next full run, each with the entries that it had when it was left. The
 * dictionary of an object has no such link.
 */
export class TransientMap<V> {
  readonly #entriesByKey: Record<string, Entry<V>> = Object.create(null);
  /** The same entries: going through them costs no look at the dictionary. */
  readonly #entries: Entry<V>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  get(key: string): V | undefined {
    return this.#entriesByKey[key]?.value;
  }

  has(key: string): boolean {
    return this.#entriesByKey[key] !== undefined;
  }

  set(key: string, value: V): void {
    const standing = this.#entriesByKey[key];
    if (standing) {
      standing.value = value;
      return;
    }
    const entry = { key, value, index: this.#entries.length };
    this.#entriesByKey[key] = entry;
    this.#entries.push(entry);
  }

  delete(key: string): boolean {
    const entry = this.#entriesByKey[key];
    if (!entry) return false;
    delete this.#entriesByKey[key];
    const last = this.#entries.pop();
    if (last && last !== entry) {
      this.#entries[entry.index] = last;
      last.index = entry.index;
    }
    return true;
  }

  /** As they are at this moment, in no order; so are the values. */
  keys(): string[] {
    return this.#entries.map(({ key }) => key);
  }

  values(): V[] {
    return this.#entries.map(({ value }) => value);
  }
}

interface Entry<V> {
  readonly key: string;
  value: V;
  index: number;
}
