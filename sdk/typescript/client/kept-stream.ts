import { Code, ConnectError } from "@connectrpc/connect";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { errorOf, isPassing } from "./error.ts";

/** A stream that brings work until it is closed; one that breaks is opened again. */
export interface KeptStream extends AsyncDisposable {
  /** Resolves when it was closed, or its session was; rejects with what ended it else. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
  /** Ends it with an error. */
  fail(error: unknown): void;
}

export interface StreamParts<T> {
  readonly open: (signal: AbortSignal) => AsyncIterable<T>;
  /** Whether this message says that the stream stands. Without it, one that has nothing to tell stands as well. */
  readonly isOpen?: (message: T) => boolean;
  /** Whether it ends well with this error. */
  readonly isOver?: (error: unknown) => boolean;
  readonly take: (message: T) => void;
}

/** Resolves once the stream stands, where one can tell. */
export async function keepStream<T>(parts: StreamParts<T>): Promise<KeptStream> {
  const { open, isOpen, isOver = () => false, take } = parts;
  const closing = new AbortController();
  const failing = new AbortController();
  const { signal } = closing;
  let stands = () => {};
  const standing = new Promise<void>((resolve) => {
    stands = resolve;
  });

  async function* endless(): AsyncGenerator<T> {
    yield* open(signal);
    throw new ConnectError("the stream ended", Code.Unavailable);
  }

  async function read(): Promise<void> {
    try {
      const patienceMs = Number.POSITIVE_INFINITY; // it stands for as long as its program does
      for await (const message of resumed({ open: endless, isPassing, patienceMs, signal })) {
        if (isOpen?.(message)) stands();
        take(message);
      }
    } catch (error) {
      if (failing.signal.aborted) throw errorOf(failing.signal.reason);
      if (!signal.aborted && !isOver(error)) throw errorOf(error);
    } finally {
      closing.abort(); // a stream that is left would go on
    }
  }

  const ended = read();
  ended.catch(() => {}); // whoever looks at it is told
  const close = async () => {
    closing.abort();
    await ended;
  };
  if (isOpen) await Promise.race([standing, ended]);
  return {
    ended,
    close,
    fail(error) {
      failing.abort(error);
      closing.abort();
    },
    [Symbol.asyncDispose]: close,
  };
}
