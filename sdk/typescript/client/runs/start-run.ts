import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FunctionToolSchema, Role, RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { type InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { type Connection, randomName } from "../connection.ts";
import { ToolbusError } from "../error.ts";
import type { Tool } from "../tool.ts";
import { Run } from "./run.ts";

/** What is said to the agent: words, or the contract's items with images, files and what was said before. */
export type Input = string | readonly MessageInitShape<typeof InputItemSchema>[];

export interface RunOptions {
  /** Functions of this program that the model may call in this run. */
  readonly functions?: readonly Tool[] | undefined;
  /** In place of the agent's own. */
  readonly instructions?: string | undefined;
  /** Repeating a run under the same key gives the first one; each is another one unless told. */
  readonly idempotencyKey?: string | undefined;
  /** Aborting it cancels the run. */
  readonly signal?: AbortSignal | undefined;
  /** All else that the contract lets a run be told: limits, `toolChoice`, `allowedTools`, MCP servers of its own. */
  readonly more?: MessageInitShape<typeof RunOptionsSchema> | undefined;
}

interface Start extends RunOptions {
  readonly input: Input;
  /** The session, or the agent of one that is opened. */
  readonly sessionId?: string;
  readonly agent?: string;
}

export function startRun(connection: Connection, start: Start): Run {
  const { input, sessionId = "", agent = "", functions = [], instructions, more, signal } = start;
  const { idempotencyKey = randomName() } = start;
  const runs = connection.client(RunService);
  const options = create(RunOptionsSchema, more);
  if (instructions !== undefined) options.instructions = instructions;
  for (const { name, description, input: schema } of functions) {
    const inputSchemaJson = schema === undefined ? "" : JSON.stringify(schema);
    options.functionTools.push(create(FunctionToolSchema, { name, description, inputSchemaJson }));
  }
  const request = { sessionId, agent, input: itemsOf(input), idempotencyKey, options };

  const send = async () => {
    signal?.throwIfAborted();
    const { run } = await connection.repeat(() => runs.createRun(request)); // a run that is aborted meanwhile has to be known to be canceled
    if (run === undefined) throw new ToolbusError("the suite told no run", { code: "internal", reason: "INTERNAL" });
    return { runId: run.id, sessionId: run.sessionId };
  };
  return new Run(connection, send(), { functions, signal });
}

/** A run that was started before, by this program or another one, whose calls of these functions are answered from here on. */
export function takeUpRun(connection: Connection, runId: string, functions: readonly Tool[]): Run {
  const find = async () => {
    const { run } = await connection.repeat(() => connection.client(RunService).getRun({ runId }));
    return { runId, sessionId: run?.sessionId ?? "" };
  };
  return new Run(connection, find(), { functions });
}

function itemsOf(input: Input): MessageInitShape<typeof InputItemSchema>[] {
  if (typeof input !== "string") return [...input];
  const content = [{ part: { case: "text" as const, value: input } }];
  return [{ item: { case: "message", value: { role: Role.USER, content } } }];
}
