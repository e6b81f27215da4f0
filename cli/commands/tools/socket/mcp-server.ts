import { Server } from "@modelcontextprotocol/server";
import { VERSION } from "#runtime/config/version.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { prefixedName } from "./frames.ts";
import type { SocketClient } from "./socket-client.ts";

/** The tools of the caller, by their prefixed names (CTR-2), as an MCP server of either era. A tool that fails is a result with `isError`, which the model reads. */
export function callerMcpServer(client: Pick<SocketClient, "config" | "tried" | "call">, validator: Validator): Server {
  const info = { name: "toolbus-agent-client", version: VERSION };
  const server = new Server(info, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler("tools/list", async () => {
    await client.tried; // for clients that list once, at their start
    const { caller_id, tools } = client.config;
    return {
      tools: tools.map(({ inputSchema, ...tool }) => ({
        ...tool,
        name: prefixedName(caller_id, tool.name),
        inputSchema: { ...inputSchema, type: "object" },
      })),
    };
  });
  server.setRequestHandler("tools/call", async ({ params }) => {
    const { name, arguments: given = {} } = params;
    try {
      return { content: [{ type: "text", text: textOf(await call(name, given)) }] };
    } catch (error) {
      return { content: [{ type: "text", text: messageFromUnknown(error) }], isError: true };
    }
  });
  return server;

  async function call(name: string, given: Record<string, unknown>): Promise<unknown> {
    const { caller_id, tools } = client.config;
    const tool = tools.find((one) => prefixedName(caller_id, one.name) === name);
    if (tool === undefined) throw new Error(`the caller declares no tool ${JSON.stringify(name)} at the moment`);
    const schemaJson = JSON.stringify(tool.inputSchema);
    const fault = await validator.faultOfArguments(schemaJson, JSON.stringify(given), "agent");
    if (fault !== undefined) throw new Error(fault);
    return await client.call(tool.name, given);
  }
}

function textOf(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result);
}
