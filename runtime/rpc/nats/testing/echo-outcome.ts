import { ConnectError } from "@connectrpc/connect";

/** The error of a call that a test expects to fail. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ConnectError) return error;
    throw error;
  }
  throw new Error("the call went well");
}

/** Reads a stream to its end. */
export async function readAll<T>(messages: AsyncIterable<T>, onMessage: (message: T) => void = () => {}): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) {
    all.push(message);
    onMessage(message);
  }
  return all;
}
