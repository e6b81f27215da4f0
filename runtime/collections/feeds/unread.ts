/** A place between the items that a feed gives; what follows is held for as long as somebody stands there or before. */
export interface Place<T> {
  /** How many items were given by then, and how many bytes they have. */
  readonly count: number;
  readonly bytes: number;
  following?: { readonly item: T; readonly place: Place<T> };
}

/** What a feed has given and one reader has not taken yet. */
export class Unread<T> {
  /** Undefined after a loss that the reader does not know of yet: it looks for what comes then, too. */
  #place: Place<T> | undefined;
  readonly #latest: () => Place<T>;
  #end: { reason: unknown } | undefined;
  #wake = () => {};

  constructor(latest: () => Place<T>) {
    this.#latest = latest;
    this.#place = latest();
  }

  get isEmpty(): boolean {
    return this.#place !== undefined && this.#place.following === undefined;
  }

  /** Undefined when something was lost. */
  async next(): Promise<T | undefined> {
    while (this.#end === undefined && this.isEmpty) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#end !== undefined) throw this.#end.reason;
    const following = this.#place?.following;
    this.#place = following?.place ?? this.#latest();
    return following?.item;
  }

  /** Something was given. A reader for whom more waits than that loses it; one item by itself may be as large as it is. */
  onGiven(mostItems: number, mostBytes: number): void {
    const { count, bytes } = this.#latest();
    const { count: taken, bytes: takenBytes } = this.#place ?? { count, bytes };
    if (count - taken > 1 && (count - taken > mostItems || bytes - takenBytes > mostBytes)) this.lose();
    else this.#wake();
  }

  lose(): void {
    this.#place = undefined;
    this.#wake();
  }

  end(reason: unknown): void {
    this.#end ??= { reason };
    this.lose();
  }
}
