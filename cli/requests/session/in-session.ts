import type { Command } from "commander";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { exitCodes, UsageFault } from "../../faults/fault.ts";
import { printNote } from "../../printing/print.ts";
import { openInterruption } from "../interruption.ts";
import { closeSession } from "./close-session.ts";

/** On whose behalf a command asks. */
export interface InSession {
  agent?: string;
  session?: string;
  space?: string;
}

export function withSessionOptions(command: Command): Command {
  return command
    .option("-a, --agent <name>", "open a session with this agent for the call")
    .option("-s, --session <id>", "call in this session")
    .option("--space <id>", "enter this space first, where people see visible tools and answer");
}

export interface OpenedSession {
  readonly connection: Connection;
  readonly sessionId: string;
  readonly signal: AbortSignal;
  readonly json: boolean;
}

/** Does the work in the session that is named, or in one of its own that is closed after it. */
export async function withSession(
  options: InSession,
  command: Command,
  work: (opened: OpenedSession) => Promise<void>,
): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  using interruption = openInterruption();
  const { signal } = interruption;
  const noteWait = () =>
    printNote("stopping: the session that is being opened is closed first; Ctrl-C again ends it at once");
  signal.addEventListener("abort", noteWait);
  let session: { id: string; isOwn: boolean } | undefined;
  try {
    session = await openSession(connection, options);
    signal.removeEventListener("abort", noteWait);
    if (options.space !== undefined) await enterSpace(connection, session.id, options.space);
    await work({ connection, sessionId: session.id, signal, json: global.json === true });
  } finally {
    if (signal.aborted) process.exitCode = exitCodes.interrupted;
    if (session?.isOwn) await closeSession(connection, session.id);
  }
}

/** The same for one of the session's sources. */
export function inSession(
  source: string,
  options: InSession,
  command: Command,
  work: (opened: OpenedSession & { source: { sessionId: string; source: string } }) => Promise<void>,
): Promise<void> {
  return withSession(options, command, (opened) =>
    work({ ...opened, source: { sessionId: opened.sessionId, source } }),
  );
}

async function enterSpace(connection: Connection, sessionId: string, spaceId: string): Promise<void> {
  const { session } = await connection.client(SessionService).getSession({ sessionId });
  const agent = session?.agent ?? "";
  const member = { case: "agent" as const, value: { sessionId, agent } };
  await connection.client(SpaceService).enterSpace({ spaceId, member });
}

async function openSession(connection: Connection, options: InSession): Promise<{ id: string; isOwn: boolean }> {
  if (options.session !== undefined) return { id: options.session, isOwn: false };
  if (options.agent === undefined) throw new UsageFault("say on whose behalf: --agent NAME or --session ID");
  const { session } = await connection.client(SessionService).createSession({ agent: options.agent });
  return { id: session?.id ?? "", isOwn: true };
}
