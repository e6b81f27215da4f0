import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import {
  InboxService,
  ListInboxEventsResponseSchema,
  type WatchInboxEventsResponse,
  WatchInboxEventsResponseSchema,
} from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { colors, printLine, printMessage } from "../../printing/print.ts";
import { printLog } from "../../watching/log-watch.ts";

interface InboxOptions {
  agent?: string;
  follow?: boolean;
}

export function addInboxCommand(program: Command): void {
  program
    .command("inbox")
    .description("Show what waits for an agent's next run")
    .argument("<session>", "the session")
    .option("-a, --agent <name>", "an agent of the session; the active one unless told")
    .option("-f, --follow", "go on with what comes")
    .action(showInbox);
}

async function showInbox(sessionId: string, options: InboxOptions, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const agent = options.agent ?? (await activeAgent(connection, sessionId));
  const inbox = connection.client(InboxService);
  if (!options.follow) {
    const pages = await allPages((pageToken) => inbox.listInboxEvents({ sessionId, agent, pageToken }));
    const events = pages.flatMap((page) => page.events);
    if (global.json)
      return printMessage(ListInboxEventsResponseSchema, create(ListInboxEventsResponseSchema, { events }));
    return events.forEach(printEvent);
  }
  const open = (place: object) => inbox.watchInboxEvents({ sessionId, agent, ...place });
  const printJson =
    global.json && ((answer: WatchInboxEventsResponse) => printMessage(WatchInboxEventsResponseSchema, answer));
  await printLog({ from: 0n, open, print: printEvent, printJson });
}

async function activeAgent(connection: Connection, sessionId: string): Promise<string> {
  const { session } = await connection.client(SessionService).getSession({ sessionId });
  return session?.agent ?? "";
}

function printEvent({ text, eventId }: InboxEvent): void {
  printLine(`${text} ${colors.dim(eventId)}`);
}
