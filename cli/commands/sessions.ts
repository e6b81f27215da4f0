import { durationFromMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { Carry, type Session, SessionStateSchema } from "#gen/toolbus/session/v1/session_pb.ts";
import {
  CloseSessionResponseSchema,
  ListSessionsResponseSchema,
  SessionService,
  SwitchAgentResponseSchema,
  WatchSessionResponseSchema,
} from "#gen/toolbus/session/v1/session_service_pb.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { invocation } from "../faults/invocation.ts";
import { colors, nameOfValue, printLine, printMessage, printNote, printTable } from "../printing/print.ts";
import { wholeNumber } from "../requests/numbers.ts";

const carries = { messages: Carry.MESSAGES, nothing: Carry.NOTHING };

export function addSessionsCommand(program: Command): void {
  const sessions = program.command("sessions").description("List, switch, watch or close sessions");
  sessions
    .command("list", { isDefault: true })
    .description("List sessions, by id")
    .option("-n, --limit <count>", "at most so many", wholeNumber(), 100)
    .option("--after <token>", "go on where the last list ended")
    .action(listSessions);
  sessions
    .command("switch")
    .description("Give a session another agent; its calls in flight may end first")
    .argument("<id>")
    .argument("<agent>")
    .option("--drain <ms>", "how long calls in flight may take until they are canceled (5000)", wholeNumber())
    .option(
      "--context-revision <n>",
      "only while its context has this revision (told by watch); so it can be repeated",
      wholeNumber(),
    )
    .addOption(
      new Option("--carry <what>", "what of the conversation so far the agent is shown: what was said, or nothing")
        .choices(Object.keys(carries))
        .default("messages"),
    )
    .action(switchAgent);
  sessions.command("watch").description("Follow the states of a session").argument("<id>").action(watchSession);
  sessions
    .command("close")
    .description("Close a session for good and release what is open for it")
    .argument("<id>")
    .option("--drain <ms>", "how long calls in flight may take until they are canceled (5000)", wholeNumber())
    .action(closeSession);
}

async function listSessions(options: { limit: number; after?: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const request = { pageSize: options.limit, pageToken: options.after ?? "" };
  const response = await openConnection(global).client(SessionService).listSessions(request);
  if (global.json) return printMessage(ListSessionsResponseSchema, response);
  const rows = response.sessions.map((session) => [session.id, ...cellsOf(session), openedAt(session)]);
  printTable(["ID", "AGENT", "STATE", "OWNER", "OPENED"], rows);
  if (response.nextPageToken !== "") printNote(`more: ${invocation} sessions --after ${response.nextPageToken}`);
}

async function switchAgent(
  sessionId: string,
  agent: string,
  options: Drain & Expected & { carry: keyof typeof carries },
  command: Command,
): Promise<void> {
  const global = globalOptionsOf(command);
  const { contextRevision: expectedContextRevision } = options;
  const expected = expectedContextRevision === undefined ? {} : { expectedContextRevision };
  const request = { sessionId, agent, carry: carries[options.carry], ...drainOf(options), ...expected };
  const response = await openConnection(global).client(SessionService).switchAgent(request);
  if (global.json) return printMessage(SwitchAgentResponseSchema, response);
  printLine(`${sessionId} has agent ${response.session?.agent}`);
}

async function watchSession(sessionId: string, _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  for await (const response of openConnection(global).client(SessionService).watchSession({ sessionId })) {
    if (global.json) printMessage(WatchSessionResponseSchema, response);
    else if (response.session) printLine(lineOf(response.session));
  }
}

async function closeSession(sessionId: string, options: Drain, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const request = { sessionId, ...drainOf(options) };
  const response = await openConnection(global).client(SessionService).closeSession(request);
  if (global.json) return printMessage(CloseSessionResponseSchema, response);
  printLine(`${sessionId} closed`);
}

interface Drain {
  drain?: number;
}

interface Expected {
  contextRevision?: number;
}

const drainOf = ({ drain }: Drain) => (drain === undefined ? {} : { drainTimeout: durationFromMs(drain) });

function cellsOf(session: Session): string[] {
  const { agent, nextAgent, principal } = session;
  return [nextAgent === "" || nextAgent === agent ? agent : `${agent} → ${nextAgent}`, stateOf(session), principal];
}

const stateOf = ({ state }: Session) => nameOfValue(SessionStateSchema, state);

function lineOf(session: Session): string {
  const [agent] = cellsOf(session);
  return `${colors.cyan(stateOf(session))} ${agent} (context revision ${session.contextRevision})`;
}

function openedAt({ createTime: createdAt }: Session): string {
  return createdAt === undefined ? "" : timestampDate(createdAt).toISOString();
}
