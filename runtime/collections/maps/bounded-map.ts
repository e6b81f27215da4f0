/** Remembers the entries that were set last, so many of them; an entry that is set again is the youngest. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    super();
    this.#maxEntries = maxEntries;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#maxEntries) this.delete(this.keys().next().value as K);
    return this;
  }
}
