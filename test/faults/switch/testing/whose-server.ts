// A small MCP server over stdio, with one tool that answers whose it is: the agent that it was started for, and the first
// session that it was called in. Its argument names the agent.
import { createInterface } from "node:readline";

interface Message {
  id?: number | string;
  method?: string;
  params?: { arguments?: { sessionId?: string; nonce?: string; delayMs?: number } };
}

const agent = process.argv[2] ?? "";
let firstSession: string | undefined;

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function answerCall({ id, params }: Message): void {
  const { sessionId = "", nonce, delayMs = 0 } = params?.arguments ?? {};
  firstSession ??= sessionId;
  const text = JSON.stringify({ agent, sessionId: firstSession, nonce, pid: process.pid });
  setTimeout(() => send({ id, result: { content: [{ type: "text", text }] } }), delayMs);
}

const tool = { name: "whose", description: "says whose it is", inputSchema: { type: "object" } };
const initialized = {
  protocolVersion: "2025-06-18",
  capabilities: { tools: {} },
  serverInfo: { name: "whose", version: "1" },
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as Message;
  if (message.id === undefined) continue; // a notification
  if (message.method === "tools/call") answerCall(message);
  else if (message.method === "tools/list") send({ id: message.id, result: { tools: [tool] } });
  else if (message.method === "initialize") send({ id: message.id, result: initialized });
  else if (message.method === "ping") send({ id: message.id, result: {} });
  else send({ id: message.id, error: { code: -32601, message: `unknown method ${message.method}` } });
}
