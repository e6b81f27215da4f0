import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openTestRouter } from "../test-router.ts";

const schema = JSON.stringify({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });

export const readFile = {
  source: "files",
  tool: { name: "read_file", inputSchemaJson: schema, executionType: ExecutionType.MCP },
};
export const removeFile = { source: "files", tool: { name: "remove_file", executionType: ExecutionType.MCP } };
const files = { name: "files", provider: "mcp", config: { command: "files" } };

export type Reader = Awaited<ReturnType<typeof openReader>>;

/** Two routers, an agent `reader` with an MCP source, a person's tool and an internal one, and sessions of it. */
export async function openReader(env: Record<string, string> = {}) {
  const suite = await openTestRouter(env);
  const routers = [suite.use(await suite.startRouter("a")), suite.use(await suite.startRouter("b"))];
  suite.mcp.offer([readFile, removeFile], [{ source: "files", available: true }]);
  const { catalogue, agents, sessions } = suite.clients;
  await catalogue.applyCatalogTool({
    tool: { name: "ask", executionType: ExecutionType.SPACE, timeout: durationFromMs(5_000) },
  });
  await catalogue.applyCatalogTool({ tool: { name: "echo", executionType: ExecutionType.INTERNAL } });
  const aliases = { read: "@files/read_file" };
  const tools = { use: ["@files/*", "ask", "echo"], allowed: { names: ["read", "ask", "echo"] }, aliases };
  await agents.applyAgent({ agent: { name: "reader", sources: [files], tools } });
  let opened = 0;
  return {
    ...suite,
    routers,
    mcpService: suite.use(await suite.startMcp()),
    async openSession(agent = "reader"): Promise<string> {
      const sessionId = `s${++opened}`;
      await sessions.createSession({ agent, sessionId });
      return sessionId;
    },
  };
}
