// A small MCP server over stdio without any SDK, which can also behave badly. Its arguments say how:
//
//   hang            answers nothing at all
//   no-list         initialises, and never lists its tools
//   list-once       answers the first question for its tools, and no other
//   flood           writes 2 MiB to stderr before it begins
//   deaf            ignores SIGTERM and the end of its input, and has a child that does likewise
//   slow-list       takes its time for its first list, which is that of the moment when it was asked, and has another tool then
//   bad-tools       lists tools that are none among one that is, on two pages
//   exit-on-probe   exits at anything but `initialize`, as some old servers do
//   silent          does not answer what it does not know, as some old servers do
//   crash           writes its last words and exits at once
//   mute            answers no ping
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

interface Message {
  id?: number | string;
  method?: string;
  result?: unknown;
  params?: {
    name?: string;
    cursor?: string;
    requestId?: number | string;
    arguments?: Record<string, unknown>;
    _meta?: { progressToken?: number | string; "toolbus/idempotency-key"?: string };
  };
}

const modes = new Set(process.argv.slice(2));
const objectSchema = { type: "object" };
const form = { type: "object", properties: { sure: { type: "boolean" } } };
const names = [
  "echo",
  "die",
  "wait",
  "work",
  "canceled",
  "big",
  "grow",
  "env",
  "report",
  "pids",
  "structured",
  "fail",
  "image",
  "key",
  "raw",
  "ask",
];
const tools: unknown[] = names.map((name) => ({ name, description: `does ${name}`, inputSchema: objectSchema }));
const canceled: unknown[] = [];
const asking = new Map<Message["id"], Message["id"]>();
let lists = 0;
const children: number[] = [];

function crash(): never {
  process.stderr.write("no configuration found\n");
  process.exit(7);
}

if (modes.has("crash")) crash();
if (modes.has("flood")) for (let line = 0; line < 2_048; line++) process.stderr.write(`${"x".repeat(1_023)}\n`);
if (modes.has("deaf")) {
  process.on("SIGTERM", () => {});
  const child = spawn(process.execPath, ["-e", 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'], {
    stdio: "inherit",
  });
  children.push(child.pid ?? 0);
  setInterval(() => {}, 1_000);
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function text(value: unknown): object {
  return { content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] };
}

function notify(method: string, params: object = {}): void {
  send({ method, params });
}

/** What a tool answers; undefined when it answers later or never. */
function call({ id, params = {} }: Message): object | undefined {
  const { name, arguments: given = {}, _meta } = params;
  switch (name) {
    case "echo":
      return text(given.text);
    case "die":
      process.stderr.write("out of cheese\n");
      return process.exit(3);
    case "wait":
      notify("notifications/progress", { progressToken: _meta?.progressToken, progress: 1 });
      if (given.ms !== undefined) setTimeout(() => send({ id, result: text("waited") }), Number(given.ms));
      return undefined;
    case "work": {
      let step = 0;
      const working = setInterval(() => {
        step += 1;
        notify("notifications/progress", { progressToken: _meta?.progressToken, progress: step });
        if (step < Number(given.steps)) return;
        clearInterval(working);
        send({ id, result: text("worked") });
      }, 100);
      return undefined;
    }
    case "canceled":
      return text(canceled);
    case "big":
      return text("x".repeat(Number(given.bytes)));
    case "grow":
      tools.push({ name: given.name, inputSchema: objectSchema });
      for (let storm = 0; storm < 50; storm++) notify("notifications/tools/list_changed");
      return text("grown");
    case "env":
      return text(process.env);
    case "report":
      notify("notifications/progress", { progressToken: _meta?.progressToken, progress: 1, total: 2, message: "half" });
      notify("notifications/message", { level: "warning", logger: "odd", data: { message: "careful", n: 1 } });
      return text("reported");
    case "key":
      return text(_meta?.["toolbus/idempotency-key"] ?? "none");
    case "pids":
      return text([process.pid, ...children]);
    case "structured":
      return { structuredContent: { answer: 42 }, content: [{ type: "text", text: "other" }] };
    case "fail":
      return { isError: true, ...text("it broke") };
    case "raw":
      process.stdout.write(`{"jsonrpc":"2.0","id":${id},${given.rest}}\n`);
      return undefined;
    case "ask":
      asking.set(`ask-${id}`, id);
      send({ id: `ask-${id}`, method: "elicitation/create", params: { message: "Sure?", requestedSchema: form } });
      return undefined;
    case "image":
      return { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] };
    default:
      send({ id, error: { code: -32602, message: `unknown tool ${name}` } });
      return undefined;
  }
}

function list(cursor: string | undefined): object {
  if (!modes.has("bad-tools")) return { tools };
  if (cursor === undefined) return { tools: [{ name: 7 }, { name: "no-schema" }, "nonsense"], nextCursor: "second" };
  const good = {
    name: "good",
    title: "Good",
    inputSchema: objectSchema,
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
  };
  return {
    tools: [
      { name: "wrong", inputSchema: { type: "string" } },
      good,
      { name: "again", inputSchema: objectSchema, annotations: { idempotentHint: true } },
    ],
  };
}

function answer(message: Message): object | undefined {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: "2025-06-18",
        capabilities: { tools: { listChanged: true }, logging: {} },
        serverInfo: { name: "odd", version: "1" },
      };
    case "tools/list":
      if (modes.has("crash-at-list")) crash();
      lists += 1;
      if (modes.has("slow-list") && lists === 1) {
        const old = [...tools];
        tools.push({ name: "later", inputSchema: objectSchema });
        notify("notifications/tools/list_changed");
        setTimeout(() => send({ id: message.id, result: { tools: old } }), 500);
        return undefined;
      }
      if (modes.has("no-list") || (modes.has("list-once") && lists > 1)) return undefined;
      return list(message.params?.cursor);
    case "tools/call":
      return call(message);
    case "ping":
      return modes.has("mute") ? undefined : {};
    case "logging/setLevel":
      return {};
    case "notifications/cancelled":
      canceled.push(message.params?.requestId);
      return undefined;
    case "server/discover":
      if (modes.has("exit-on-probe")) process.exit(1);
      if (modes.has("silent")) return undefined;
      send({ id: message.id, error: { code: -32601, message: "method not found" } });
      return undefined;
    default:
      return undefined;
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  if (modes.has("hang")) return;
  const message: Message = JSON.parse(line);
  if (asking.has(message.id) && message.method === undefined)
    send({ id: asking.get(message.id), result: text(message.result) });
  const result = answer(message);
  if (result && message.id !== undefined) send({ id: message.id, result });
});
