import { messageFromUnknown } from "../../failure/failure.ts";
import { retryWhile } from "../../time/retry/retry.ts";

const polling = { initialMs: 25, maxMs: 25 };
/** SQLite's code for a database that another one has locked. */
const BUSY = 5;

/**
 * One holder at a time among the processes of a machine; waits until it is this one, and disposing releases it. The lock is that of an
 * empty database, which the system takes from a holder that dies, and from one that opens and closes the file in another way. `onWait` is
 * told once, when somebody else holds it.
 */
export async function openLockFile(path: string, signal?: AbortSignal, onWait = () => {}): Promise<Disposable> {
  const { DatabaseSync } = await import("node:sqlite"); // few processes ever lock anything
  const onRetry = (_: unknown, attempt: number) => attempt === 1 && onWait();
  using stack = new DisposableStack();
  try {
    const database = stack.use(new DatabaseSync(path));
    await retryWhile(isHeld, async () => database.exec("BEGIN EXCLUSIVE"), { ...polling, signal, onRetry });
    return stack.move();
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Error(`${path} cannot be locked: ${messageFromUnknown(cause)}`, { cause }); // SQLite names no file
  }
}

function isHeld(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === BUSY;
}
