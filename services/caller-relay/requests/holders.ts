/** Which instance holds the call that a request belongs to, and so waits for its answer. */
export interface Holders {
  /** From here on others find this instance, until it is disposed. */
  announce(sessionId: string, requestId: string): Disposable;
  /** The other instance; undefined when none holds it. */
  locate(sessionId: string, requestId: string): Promise<string | undefined>;
}
