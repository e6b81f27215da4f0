import { toJson } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ApproveToolsResponseSchema, type ToolChange, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { globalOptionsOf, openConnection } from "../../connection.ts";
import { UsageFault } from "../../faults/fault.ts";
import { invocation } from "../../faults/invocation.ts";
import { colors, printLine, printLines, printMessage, printNote } from "../../printing/print.ts";

export function addApproveCommand(tools: Command): void {
  tools
    .command("approve")
    .description("Show which pinned tools of an agent have changed, and approve those that are named")
    .argument("<agent>")
    .argument("[tools...]", "references; with =sha256:… only if that is the definition which is offered")
    .action(approveTools);
}

async function approveTools(agent: string, named: string[], _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const service = openConnection(global).client(ToolService);
  const told = await service.approveTools({ agent });
  const approvals = named.map((name) => approvalFrom(name, told.changes));
  const references = new Set(approvals.map(({ reference }) => reference));
  const shown = told.changes.filter(({ reference }) => named.length === 0 || references.has(reference));
  const approved = named.length === 0 ? told : await service.approveTools({ agent, approvals });
  if (global.json) return printMessage(ApproveToolsResponseSchema, approved);
  if (shown.length === 0) return printLine(`no pinned tool of ${agent} has changed`);
  for (const change of shown) {
    printLines(linesOfChange(change));
    if (named.length > 0) printLine(colors.green(`${change.reference} is approved`));
    else printNote(`approve it: ${invocation} tools approve ${agent} ${change.reference}=${change.offeredDigest}`);
  }
}

/** What is approved is what is shown, or what was shown before. */
function approvalFrom(name: string, changes: readonly ToolChange[]): { reference: string; digest: string } {
  const [, reference = name, digest] = /^(.*)=(sha256:[0-9a-f]{64})$/.exec(name) ?? [];
  const shown = changes.find((change) => change.reference === reference);
  if (shown === undefined) throw new UsageFault(`${reference} has not changed since it was approved, or is not pinned`);
  return { reference, digest: digest ?? shown.offeredDigest };
}

/** What differs, as it was approved and as it is offered. */
function linesOfChange({ reference, approved, offered, approvedDigest, offeredDigest }: ToolChange): string[] {
  const [before, after] = [fieldsOf(approved), fieldsOf(offered)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const lines = names.flatMap((name) => {
    const [one, other] = [JSON.stringify(before[name]), JSON.stringify(after[name])];
    if (one === other) return [];
    const removed = one === undefined ? [] : [colors.red(`- ${name}: ${one}`)];
    return [...removed, ...(other === undefined ? [] : [colors.green(`+ ${name}: ${other}`)])];
  });
  return [colors.bold(reference), `  ${approvedDigest} → ${offeredDigest}`, ...lines];
}

function fieldsOf(tool: Tool | undefined): Record<string, unknown> {
  return tool === undefined ? {} : (toJson(ToolSchema, tool) as Record<string, unknown>);
}
