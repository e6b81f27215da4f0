import { form as agentForm } from "#gen/forms/agent-form.ts";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { agentFromFile, placedInFile } from "#runtime/agent-file/agent-from-file.ts";
import { createFileForm, type Parsed, readContract } from "./file-form.ts";

const form = createFileForm(agentForm);

/** An agent's file; `mcp.servers` and `workers` are a short way to write sources. */
export function parseAgentFile(text: string): Parsed<Agent> {
  const parsed = form(text);
  const file = parsed.kind === "parsed" ? parsed.value : (parsed.readable ?? {});
  const placed = (fault: string) => placedInFile(file, fault);
  if (parsed.kind === "parsed") return { ...readContract(() => agentFromFile(parsed.value)), placed };
  const { faults, readable } = parsed;
  try {
    const read = readable && { readable: agentFromFile(readable, { ignoreUnknownFields: true }) };
    return { kind: "faulty", faults, placed, ...read };
  } catch {
    return { kind: "faulty", faults }; // of a form that nothing can be read from
  }
}
