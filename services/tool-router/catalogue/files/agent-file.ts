import { form as agentForm } from "#gen/forms/agent-form.ts";
import { agentFromFile, placedInFile } from "#runtime/agent-file/agent-from-file.ts";
import { createFileForm } from "./file-form.ts";

/** An agent's file; `mcp.servers` and `workers` are a short way to write sources. */
export const parseAgentFile = createFileForm(agentForm, agentFromFile, { placed: placedInFile });
