/** A bucket of messages by key. Reads see every write that was acknowledged. */
export interface Documents<T> {
  read(key: string): Promise<Stored<T> | undefined>;
  /** The revision, or undefined when the key has a value already. */
  create(key: string, value: T): Promise<number | undefined>;
  /**
   * Writes what `decide` returns for the value and its revision (0 for none), and decides again if somebody else wrote meanwhile;
   * undefined keeps it.
   */
  update(key: string, decide: (value: T | undefined, revision: number) => T | undefined): Promise<Update<T>>;
  /** Removes the value if `decide` still agrees; false when nothing was removed. */
  remove(key: string, decide: (value: T, revision: number) => boolean): Promise<boolean>;
  /** All values that stand, or those of a part of them. */
  list(signal: AbortSignal, part?: Part): AsyncIterable<Stored<T>>;
}

/** A filter that needs no decoding: a list of few among many costs little more than these. */
export interface Part {
  /** Written at this time or later. */
  since?: Date | undefined;
  /** Holds these bytes, as it is written. */
  containing?: Uint8Array | undefined;
}

export interface Stored<T> {
  key: string;
  value: T;
  revision: number;
}

export interface Update<T> {
  before: T | undefined;
  /** The value after the update; undefined when there was none and none was written. */
  value: T | undefined;
  revision: number;
  hasChanged: boolean;
}
