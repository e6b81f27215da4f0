import { retryWhile } from "../../time/retry/retry.ts";

const polling = { initialMs: 25, maxMs: 25 };
/** SQLite's code for a database that another one has locked. */
const BUSY = 5;

/**
 * One holder at a time among the processes of a machine; waits until it is this one, and disposing releases it. The lock is that of an
 * empty database, which the system takes from a holder that dies. `onWait` is told once, when somebody else holds it.
 */
export async function openLockFile(path: string, signal?: AbortSignal, onWait = () => {}): Promise<Disposable> {
  const { DatabaseSync } = await import("node:sqlite"); // few processes ever lock anything
  const database = new DatabaseSync(path);
  const lock = async () => database.exec("BEGIN EXCLUSIVE");
  const onRetry = (_: unknown, attempt: number) => attempt === 1 && onWait();
  try {
    await retryWhile(isHeld, lock, { ...polling, signal, onRetry });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function isHeld(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === BUSY;
}
