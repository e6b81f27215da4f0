/**
 * The library for programs that use agents. It does nothing that the suite does not confirm: each of its words is one of the contract,
 * and what it adds is to send again what was not answered, and to take up streams where they broke.
 */

import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { openConnection, type ToolbusOptions } from "./connection.ts";
import type { KeptStream } from "./kept-stream.ts";
import type { Run } from "./runs/run.ts";
import { type Input, type RunOptions, startRun, takeUpRun } from "./runs/start-run.ts";
import { openSession, type Session, type SessionOptions } from "./session.ts";
import { openSpace, type Space } from "./space.ts";
import type { Tool } from "./tool.ts";
import { type WatchOptions, watchTools } from "./watcher.ts";

export type { Attachment } from "./attachment.ts";
export type { ToolbusOptions } from "./connection.ts";
export { type ReasonName, ToolbusError } from "./error.ts";
export type { KeptStream } from "./kept-stream.ts";
export type { RunUpdate } from "./runs/place.ts";
export { type Run, RunError, type RunResult } from "./runs/run.ts";
export type { Input, RunOptions } from "./runs/start-run.ts";
export type { TextPiece } from "./runs/text.ts";
export type { Session, SessionOptions } from "./session.ts";
export type { Space } from "./space.ts";
export { type Tool, type ToolContext, tool } from "./tool.ts";
export type { WatchOptions } from "./watcher.ts";

/** A suite, as a program outside uses it. */
export interface Toolbus {
  /** Starts a run of an agent, in a session of its own. */
  run(agent: string, input: Input, options?: RunOptions): Run;
  /** Takes up a run that was started before, as after a restart of the program. */
  takeUp(runId: string, options?: { functions?: readonly Tool[] }): Run;
  openSession(agent: string, options?: SessionOptions): Promise<Session>;
  openSpace(id: string): Promise<Space>;
  /** Executes calls of external tools, until it is closed. */
  watch(options: WatchOptions): Promise<KeptStream>;
  /** A client of any service of the contract, for what has no words here. */
  client<S extends DescService>(service: S): Client<S>;
}

/** Nothing is sent before the first request. */
export function createToolbus(options: ToolbusOptions = {}): Toolbus {
  const connection = openConnection(options);
  return {
    run: (agent, input, given = {}) => startRun(connection, { agent, input, ...given }),
    takeUp: (runId, { functions = [] } = {}) => takeUpRun(connection, runId, functions),
    openSession: (agent, given) => openSession(connection, agent, given),
    openSpace: (id) => openSpace(connection, id),
    watch: (given) => watchTools(connection, given),
    client: connection.client,
  };
}
