import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Connection } from "./connection.ts";
import { exitCodes } from "./fault.ts";
import { type FollowOptions, followRun } from "./run-follower.ts";
import { createJsonRunPrinter, createRunPrinter } from "./run-printer.ts";

/** Shows a run on standard output until it ends. One that does not complete is a failure of the command. */
export async function showToEnd(
  connection: Connection,
  runId: string,
  { json, ...options }: { json: boolean | undefined } & Pick<FollowOptions, "staysWhileParked">,
): Promise<void> {
  const write = (text: string) => void process.stdout.write(text);
  const printer = json ? createJsonRunPrinter(write) : createRunPrinter(write);
  const status = await followRun(connection, runId, { ...options, printer });
  if (status !== RunStatus.COMPLETED) process.exitCode = exitCodes.failure;
}
