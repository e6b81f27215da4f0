import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type AuditEvent, AuditKind, AuditKindSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { colors, nameOfValue, oneLine } from "./print.ts";

const troubles: ReadonlySet<AuditKind> = new Set([
  AuditKind.BLOCKED,
  AuditKind.SWITCH_TIMED_OUT,
  AuditKind.UNAVAILABLE,
  AuditKind.WATCHER_LOST,
]);

/** One decision in one line: when, what, where, about whom, and why. */
export function textOfAuditEvent(event: AuditEvent): string {
  const { kind, service, agent, sessionId, tool, rule, message } = event;
  const name = nameOfValue(AuditKindSchema, kind).padEnd(11);
  const time = event.createTime === undefined ? "" : timestampDate(event.createTime).toISOString();
  const subject = [agent && `agent ${agent}`, sessionId && `session ${sessionId}`, tool && `tool ${tool}`];
  const why = message.includes(rule) ? message : [rule, message].filter((part) => part !== "").join(": ");
  return [
    colors.dim(time),
    troubles.has(kind) ? colors.red(name) : colors.cyan(name),
    service,
    subject.filter((part) => part !== "").join(", "),
    oneLine(why),
  ]
    .filter((part) => part !== "")
    .join("  ");
}

/** `blocked`, `switch-timed-out` or `SWITCH_TIMED_OUT`; undefined for no kind at all. */
export function auditKindFrom(text: string): AuditKind | undefined {
  const wanted = text.toUpperCase().replace(/[ -]/g, "_");
  const kind = wanted === "UNSPECIFIED" ? undefined : AuditKind[wanted as keyof typeof AuditKind];
  return typeof kind === "number" ? kind : undefined;
}

export function auditKindNames(): string[] {
  return AuditKindSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName }) => localName.toLowerCase().replaceAll("_", "-"));
}
