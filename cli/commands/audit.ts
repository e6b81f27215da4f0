import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import { type AuditEvent, AuditEventSchema, type AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditFilterSchema, AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import { globalOptionsOf, openConnection } from "../connection.ts";
import { auditKindFrom, auditKindNames, textOfAuditEvent } from "../printing/audit-printer.ts";
import { printLine, printMessage } from "../printing/print.ts";
import { wholeNumber } from "../requests/numbers.ts";
import { pastTime } from "../requests/past-time.ts";
import { printLog } from "../watching/log-watch.ts";

interface Options {
  agent?: string;
  session?: string;
  run?: string;
  tool?: string;
  service?: string;
  principal?: string;
  kind?: AuditKind[];
  since?: Date;
  limit: number;
  follow?: boolean;
}

export function addAuditCommand(program: Command): void {
  program
    .command("audit")
    .description("List what the suite decided, the latest last, and follow it")
    .option("-a, --agent <name>", "only of this agent")
    .option("-s, --session <id>", "only of this session")
    .option("-r, --run <id>", "only of this run")
    .option("-t, --tool <name>", "only of this tool, by its real name, or of this source")
    .option("-k, --kind <kind...>", `only of these kinds: ${auditKindNames().join(", ")}`, kindsFrom)
    .option("--service <name>", "only of this service")
    .option("--principal <name>", "only what this principal asked for, or what was decided on its behalf")
    .option("--since <time>", "only after this: 30s, 10m, 2h, 7d ago, or a date", pastTime)
    .option("-n, --limit <count>", "the last so many", wholeNumber({ min: 1 }), 50)
    .option("-f, --follow", "go on with what comes")
    .action(audit);
}

async function audit(options: Options, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const print = (event: AuditEvent) =>
    global.json ? printMessage(AuditEventSchema, event) : printLine(textOfAuditEvent(event));
  const trail = openConnection(global).client(AuditService);
  const filter = filterFrom(options);
  const head = options.follow ? await latestSequence(trail) : 0n;
  const latest = await firstOf(options.limit, async (page) => {
    const { events: items, ...rest } = await trail.listAuditEvents({ filter, ...page });
    return { items, ...rest };
  });
  for (const event of latest.items.reverse()) {
    if (!options.follow || event.sequence <= head) print(event);
  }
  if (!options.follow) return;
  const open = (place: object) => trail.watchAuditEvents({ filter, ...place });
  await printLog({ from: head + 1n, open, print });
}

function filterFrom({ session = "", run = "", kind = [], since, ...named }: Options) {
  const { agent = "", tool = "", service = "", principal = "" } = named;
  return create(AuditFilterSchema, {
    agent,
    sessionId: session,
    runId: run,
    tool,
    service,
    principal,
    kinds: kind,
    ...(since && { startTime: timestampFromDate(since) }),
  });
}

async function latestSequence(trail: Client<typeof AuditService>): Promise<bigint> {
  const { events } = await trail.listAuditEvents({ pageSize: 1 });
  return events[0]?.sequence ?? 0n;
}

function kindsFrom(text: string, before: AuditKind[] = []): AuditKind[] {
  const kind = auditKindFrom(text);
  if (kind === undefined) throw new InvalidArgumentError(`the kinds are ${auditKindNames().join(", ")}`);
  return [...before, kind];
}
