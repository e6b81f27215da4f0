/** Records by key, each changed by one writer at a time however many try. */
export interface Table<T> {
  /** The record as every acknowledged change left it. */
  read(key: string): Promise<T | undefined>;
  /**
   * Writes what `decide` makes of the record, or nothing when it gives undefined. When somebody else wrote meanwhile it is
   * asked again, so it must have no effects. Gives what stood before the decision that held.
   */
  change(key: string, decide: (current: T | undefined) => T | undefined): Promise<T | undefined>;
  /** Removes the record if it is (still) one of those. */
  remove(key: string, isDoomed: (current: T) => boolean): Promise<void>;
  list(): Promise<T[]>;
}
