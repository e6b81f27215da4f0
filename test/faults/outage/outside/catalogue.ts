import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFiles } from "../../../harness/agents/write-files.ts";
import type { ToolName } from "../history.ts";
import type { Outside } from "./outside.ts";

export const agentName = "steady";
const subAgent = "deputy";

/** By what names the agent's tools are called. */
export const namesByTool: Readonly<Record<ToolName, string>> = {
  hosted_pure: "@effects/hosted_pure",
  hosted_at_most_once: "@effects/hosted_at_most_once",
  mcp_pure: "@local/mcp_pure",
  mcp_at_most_once: "@local/mcp_at_most_once",
  http_pure: "http_pure",
  http_at_most_once: "http_at_most_once",
  agent: `agent_${subAgent}`,
};

/** An agent with a hosted module, an MCP server of its own, HTTP tools, and a sub-agent, whose only call may happen once. */
export async function writeCatalogue(directory: string, outside: Outside): Promise<void> {
  const program = fileURLToPath(new URL("mcp-server.ts", import.meta.url));
  const servers = [{ name: "local", transport: "stdio", command: process.execPath, args: [program, outside.url] }];
  const http = (name: "http_pure" | "http_at_most_once") => ({
    name,
    executionType: "gateway",
    visible: false,
    effect: name.slice("http_".length),
    execution: { url: outside.url },
  });
  const use = Object.values(namesByTool);
  await writeFiles(directory, {
    [join("agents", `${agentName}.json`)]: {
      name: agentName,
      tools: { use },
      mcp: { servers },
      subAgents: [{ agent: subAgent }],
    },
    [join("agents", `${subAgent}.json`)]: {
      name: subAgent,
      model: { provider: "openai-compatible", model: "deputy-1" },
      tools: { use: ["http_at_most_once"] },
    },
    "tools/http_pure.json": http("http_pure"),
    "tools/http_at_most_once.json": http("http_at_most_once"),
    "hosted/effects.js": moduleTo(outside.url),
  });
}

function moduleTo(url: string): string {
  return `const tool = (effect) => ({
  name: "hosted_" + effect,
  effect,
  description: "",
  inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
  run: async ({ key }) => (await fetch("${url}", { method: "POST", body: JSON.stringify({ key }) })).json(),
});
export default { tools: [tool("pure"), tool("at_most_once")] };
`;
}
