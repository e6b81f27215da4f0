// A server over stdio with three resources, templates and prompts, in no order.
import { fromJsonSchema, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

serveStdio(() => {
  const server = new McpServer({ name: "content", version: "1" });
  const inputSchema = fromJsonSchema({ type: "object" });
  server.registerTool("nothing", { inputSchema }, async () => ({ content: [] }));
  for (const name of ["c", "a", "b"]) {
    const read = async (uri: URL) => ({ contents: [{ uri: uri.href, text: name }] });
    server.registerResource(name, `test://${name}`, {}, read);
    server.registerResource(`t${name}`, new ResourceTemplate(`test://${name}/{id}`, { list: undefined }), {}, read);
    server.registerPrompt(name, {}, async () => ({
      messages: [{ role: "user", content: { type: "text", text: name } }],
    }));
  }
  return server;
});
