import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Role, type Run, type RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { Connection } from "../../../cli/connection.ts";
import { followRun } from "../../../cli/watching/run-follower.ts";
import { fixturesIn } from "./fixtures.ts";

/** A suite with these variables knows the agent `plain`, which calls one tool that needs no provider. */
export const plainAgent = fixturesIn(".");

export interface Plain {
  agent: string;
  text: string;
  options?: MessageInitShape<typeof RunOptionsSchema>;
}

/** Runs an agent to its end and gives the run as it is recorded. */
export async function runToEnd(connection: Connection, options: Plain): Promise<Run> {
  const runs = connection.client(RunService);
  const message = { role: Role.USER, content: textContent(options.text) };
  const input = [create(InputItemSchema, { item: { case: "message", value: message } })];
  const { run } = await runs.createRun({
    agent: options.agent,
    input,
    ...(options.options && { options: options.options }),
  });
  const runId = run?.id ?? "";
  await followRun(connection, runId, { printer: { show: () => {} } });
  const ended = (await runs.getRun({ runId })).run;
  if (ended === undefined) throw new Error(`the run ${runId} is gone`);
  return ended;
}
