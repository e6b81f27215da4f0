import type { Command } from "commander";
import type { AuditEvent } from "#gen/toolbus/audit/v1/audit_pb.ts";
import {
  AuditService,
  type WatchAuditEventsResponse,
  WatchAuditEventsResponseSchema,
} from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { textOfAuditEvent } from "../printing/audit-printer.ts";
import { printLine, printMessage } from "../printing/print.ts";
import { printLog } from "../watching/log-watch.ts";
import { showToEnd } from "../watching/show-to-end.ts";
import { watchSpace } from "./spaces/spaces.ts";

export function addWatchCommand(program: Command): void {
  const watch = program.command("watch").description("Follow a run, a space or the audit trail as it happens");
  watch
    .command("run")
    .description("Follow a run from its beginning to its end, also while it waits for outputs")
    .argument("<id>")
    .action(watchRun);
  watch.command("space").description("Follow a space").argument("<id>").action(watchSpace);
  watch
    .command("audit")
    .description("Follow what the suite decides")
    .option("-a, --agent <name>", "only of this agent")
    .option("-s, --session <id>", "only of this session")
    .action(watchAudit);
}

export async function watchRun(id: string, _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  await showToEnd(openConnection(global), id, { json: global.json, staysWhileParked: true });
}

async function watchAudit(options: { agent?: string; session?: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const filter = { agent: options.agent ?? "", sessionId: options.session ?? "" };
  const audit = openConnection(global).client(AuditService);
  const open = (place: object) => audit.watchAuditEvents({ filter, ...place });
  const printJson =
    global.json && ((answer: WatchAuditEventsResponse) => printMessage(WatchAuditEventsResponseSchema, answer));
  await printLog({ open, print: (event: AuditEvent) => printLine(textOfAuditEvent(event)), printJson });
}
