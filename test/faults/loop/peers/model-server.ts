import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import type { PromptMessage } from "../history/history.ts";
import { type Script, textOf } from "../plan/script.ts";

export type ProviderFault = "429" | "stall" | "reset" | "garbage";

/** What the server does next: goes on, or fails in this way. */
export type Turnout = ProviderFault | undefined;

export type ModelStage = "asked" | "text" | "arguments";

/** The run that a request belongs to, which decides what becomes of it. */
export interface Conversation {
  readonly token: string;
  readonly script: Script;
  /** The request came, or half of its text or of a call's arguments has been sent. */
  onStage(stage: ModelStage, at: { turn: number; instance: string }): Promise<Turnout>;
  onPrompt(messages: PromptMessage[]): number;
}

export interface ModelServer extends AsyncDisposable {
  /** The base URL for one process of the orchestrator. */
  urlFor(instance: string): string;
}

interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: { id: string }[];
  tool_call_id?: string;
}

/** A provider of models over the chat completions API, which follows scripts and fails when it is told to. */
export async function openModelServer(find: (token: string) => Conversation | undefined): Promise<ModelServer> {
  const server = createServer((request, response) => {
    answer(request, response, find).catch((error: unknown) => response.destroy(error as Error));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    urlFor: (instance) => `http://127.0.0.1:${port}/${instance}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  find: (token: string) => Conversation | undefined,
): Promise<void> {
  response.on("error", () => {}); // who asked may be killed in the middle
  const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>).catch(() => undefined);
  if (chunks === undefined) return; // likewise while it asks
  const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: ChatMessage[] };
  const lastInput = messages.findLastIndex(({ role }) => role === "user");
  const [, token = ""] = /\[(\w+)\]/.exec(JSON.stringify(messages[lastInput]?.content)) ?? [];
  const conversation = find(token);
  if (conversation === undefined) return void response.writeHead(400).end(`no run ${token}`);
  const number = conversation.onPrompt(messages.map(promptMessageFrom));
  const turn = messages.slice(lastInput).filter(({ role }) => role === "assistant").length + 1;
  const instance = (request.url ?? "").split("/")[1] ?? "";
  const speech = createSpeech(response, `c-${token}-${number}`);
  const isOver = async (stage: ModelStage) =>
    fail(await conversation.onStage(stage, { turn, instance }), speech, response);
  if (await isOver("asked")) return;
  const words = textOf(token, turn, number).split(/(?<= )/);
  const half = Math.floor(words.length / 2);
  await speech.say(words.slice(0, half));
  if (await isOver("text")) return;
  await speech.say(words.slice(half));
  const calls = conversation.script.turns[turn - 1]?.calls ?? [];
  for (const [index, { tool }] of calls.entries()) {
    const [first, second] = halvesOf(JSON.stringify({ key: `${token}-${turn}-${number}-${index}` }));
    speech.call(index, { id: `call_${token}_${number}_${index}`, name: tool, text: first });
    await turnOfLoop();
    if (index === 0 && (await isOver("arguments"))) return;
    speech.call(index, { text: second });
  }
  speech.end(calls.length > 0 ? "tool_calls" : "stop");
}

function promptMessageFrom({ role, tool_calls = [], tool_call_id = "" }: ChatMessage): PromptMessage {
  return { role, callIds: tool_calls.map(({ id }) => id), answersCallId: tool_call_id };
}

function halvesOf(text: string): [string, string] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

type Speech = ReturnType<typeof createSpeech>;

function createSpeech(response: ServerResponse, id: string) {
  function send(chunk: object): void {
    if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
    const common = { id, object: "chat.completion.chunk", created: 1, model: "faulty-1" };
    response.write(`data: ${JSON.stringify({ ...common, ...chunk })}\n\n`);
  }
  const sendDelta = (delta: object) => send({ choices: [{ index: 0, delta }] });
  return {
    async say(words: readonly string[]): Promise<void> {
      for (const content of words) {
        sendDelta({ content });
        await turnOfLoop();
      }
    },
    call(index: number, { id: callId, name, text }: { id?: string; name?: string; text: string }): void {
      const named = { ...(name && { name }), arguments: text };
      sendDelta({ tool_calls: [{ index, ...(callId && { id: callId, type: "function" }), function: named }] });
    },
    end(reason: string): void {
      send({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
      send({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } });
      response.end("data: [DONE]\n\n");
    },
  };
}

/** Whether the answer is over by a fault. */
function fail(fault: Turnout, speech: Speech, response: ServerResponse): boolean {
  if (fault === undefined) return false;
  if (fault === "429" && !response.headersSent) {
    response.writeHead(429, { "retry-after-ms": "50", "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "slow down" } }));
  } else if (fault === "reset") response.socket?.resetAndDestroy();
  else if (fault === "garbage") sendGarbage(speech, response);
  return true; // who stalls says nothing more, and leaves the connection open
}

function sendGarbage(speech: Speech, response: ServerResponse): void {
  if (!response.headersSent) {
    response.writeHead(502, { "content-type": "text/html" }).end("<html>Bad gateway</html>");
    return;
  }
  response.write('data: {"choices": [{"index": 0, "del\u0000\ufffd<<<\n\n');
  speech.end("stop");
}
