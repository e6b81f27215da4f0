import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Connection } from "../connection.ts";
import { exitCodes } from "../faults/fault.ts";
import { createJsonRunPrinter, createRunPrinter, type RunPrinter } from "../printing/run-printer.ts";
import { printJson, printText } from "../printing/terminal.ts";
import { type FollowOptions, followRun } from "./run-follower.ts";

export interface ShowOptions extends Pick<FollowOptions, "staysWhileParked" | "signal"> {
  readonly json: boolean | undefined;
  /** Told of all that is shown, after it was. */
  readonly onUpdate?: RunPrinter["show"];
}

/** Shows a run on standard output until it ends, and tells how it did. One that does not complete is a failure of the command. */
export async function showToEnd(
  connection: Connection,
  runId: string,
  { json, onUpdate, ...options }: ShowOptions,
): Promise<RunState> {
  const lines = json ? createJsonRunPrinter(printJson) : createRunPrinter(printText);
  const show: RunPrinter["show"] = (update) => {
    lines.show(update);
    onUpdate?.(update);
  };
  const status = await followRun(connection, runId, { ...options, printer: { show } });
  if (status !== RunState.COMPLETED) process.exitCode = exitCodes.failure;
  return status;
}
