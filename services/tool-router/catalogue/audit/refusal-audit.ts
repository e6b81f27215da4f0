import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";

/** Each refusal once, and its end. */
export function auditRefusals(audit: Audit, before: readonly RefusedFile[], after: readonly RefusedFile[]): void {
  const textOf = ({ file, faults }: RefusedFile) => `the file ${file} is refused: ${faults.join("; ")}`;
  const [told, standing] = [new Set(before.map(textOf)), new Set(after.map(({ file }) => file))];
  for (const message of after.map(textOf)) {
    if (!told.has(message)) audit({ kind: AuditKind.CONFIGURED, rule: "file refused", message });
  }
  for (const { file } of before.filter((one) => !standing.has(one.file)))
    audit({ kind: AuditKind.CONFIGURED, rule: "file accepted", message: `the file ${file} is refused no longer` });
}
