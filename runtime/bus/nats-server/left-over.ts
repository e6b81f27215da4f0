import { LocalFailure } from "../../failure/local-failure.ts";
import { until } from "../../time/until.ts";
import { commandLineOf, isSameProcessAlive, type ProcessIdentity } from "./process-identity.ts";
import { readRunRecord, type ServerFiles } from "./server-files.ts";

/** How long a start waits for the one before it, which may be ending. */
const ENDING_MS = 3_000;

/**
 * Ends the server that a killed owner left behind in this directory.
 * A server whose owner goes on living is refused instead; a process that is not provably ours is never touched.
 */
export async function endLeftOver(files: ServerFiles): Promise<void> {
  const record = await readRunRecord(files);
  if (record === undefined || !isOurServer(record.server, files)) return;
  const isOver = () => !isSameProcessAlive(record.owner) || !isOurServer(record.server, files);
  await until(isOver, { timeoutMs: ENDING_MS, what: "its owner to end" }).catch(() => {
    throw new LocalFailure(
      "failed_precondition",
      `process ${record.owner.pid} runs a NATS server in ${files.directory} already: stop it, or use another directory`,
      { kind: "nats_directory_in_use" },
    );
  });
  if (isOurServer(record.server, files)) await endServer(record.server, files);
}

/** The same process as recorded, and its command line names our configuration file. */
export function isOurServer(server: ProcessIdentity, files: ServerFiles): boolean {
  return isSameProcessAlive(server) && commandLineOf(server.pid)?.includes(files.config) === true;
}

/** Asks it to stop, then stops it. */
async function endServer(server: ProcessIdentity, files: ServerFiles): Promise<void> {
  const isGone = () => !isOurServer(server, files);
  const what = `nats-server ${server.pid} to end`;
  process.kill(server.pid, "SIGTERM");
  try {
    await until(isGone, { timeoutMs: 3_000, what });
  } catch {
    process.kill(server.pid, "SIGKILL"); // it did not listen: it may be stopped by SIGSTOP
    await until(isGone, { timeoutMs: 5_000, what });
  }
}
