/** What the iterators of `begin` read. Of a class: V8 makes a literal with a computed name by a slow way, and a call reads several streams. */
export class Iterated<T> implements AsyncIterable<T> {
  readonly #begin: () => AsyncIterator<T>;

  constructor(begin: () => AsyncIterator<T>) {
    this.#begin = begin;
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this.#begin();
  }
}
