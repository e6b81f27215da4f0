// The program of one hosted module's process. Everything that the module does happens here, so that a loop without end, an
// exception that nobody caught, or `process.exit` ends this process and nothing else.

import { Socket } from "node:net";
import { pathToFileURL } from "node:url";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import type { HostedLog, HostedModule, Json, JsonObject, RegisteredTool } from "../../../../sdk/typescript/hosted.ts";
import type { Ask, FromModule, ToModule } from "./messages.ts";
import { describedTool, parseModule } from "./module-form.ts";

class ResultError extends Error {}

/** An error may be its own cause. */
const MAX_TOLD_ERRORS = 5;

const calls = new Map<number, AbortController>();
const asks = new Map<number, PromiseWithResolvers<Json>>();
let lastAskId = 0;
let module: HostedModule | undefined;

const [input, output] = [new Socket({ fd: 3 }), new Socket({ fd: 4 })];
const tell = (message: FromModule): void => void output.write(`${JSON.stringify(message)}\n`);

process.on("uncaughtExceptionMonitor", (error) => tell({ kind: "fault", reason: messageFromUnknown(error) }));
const [path = ""] = process.argv.splice(2);
void load(pathToFileURL(path).href);
for await (const line of readLines(input)) void take(JSON.parse(line) as ToModule);
process.exit(); // the service is gone, or has let go of it

async function load(url: string): Promise<void> {
  try {
    const loaded: { default?: unknown } = await import(url);
    module = parseModule(loaded.default);
    const initializes = module.initialize !== undefined;
    tell({ kind: "described", tools: module.tools.map(describedTool), initializes });
  } catch (error) {
    tell({ kind: "refused", reason: textFromError(error), detail: detailFromError(error) });
  }
}

async function take(message: ToModule): Promise<void> {
  switch (message.kind) {
    case "initialize":
      return initialize();
    case "call":
      return run(message);
    case "cancel":
      return calls.get(message.id)?.abort(new Error(message.reason));
    case "reply":
      return asks.get(message.askId)?.resolve(JSON.parse(message.valueJson));
    case "refusal":
      return asks.get(message.askId)?.reject(new Error(message.error));
    case "ping":
      return tell({ kind: "pong" });
    case "shutdown":
      return shutdown();
  }
}

async function initialize(): Promise<void> {
  try {
    await module?.initialize?.({ log: createLog() });
    tell({ kind: "initialized" });
  } catch (error) {
    const reason = `initialize failed: ${textFromError(error)}`;
    tell({ kind: "refused", reason, detail: detailFromError(error) });
  }
}

async function shutdown(): Promise<void> {
  try {
    await module?.shutdown?.();
  } catch (error) {
    createLog().error(`shutdown failed: ${textFromError(error)}`);
  }
  tell({ kind: "shut down" });
}

async function run({ id, tool, callId, arguments: given, config, secrets }: Extract<ToModule, { kind: "call" }>) {
  const abort = new AbortController();
  calls.set(id, abort);
  try {
    const found = module?.tools.find(({ name }) => name === tool);
    const value = await found?.run(given, {
      callId,
      signal: abort.signal,
      config,
      secrets,
      log: createLog(id),
      registry: createRegistry(id),
      model: {
        generate: async ({ prompt, instructions = "", agent = "" }) =>
          (await ask(id, { kind: "generate", prompt, instructions, agent })) as { text: string },
      },
      progress: (done, total = 0, message = "") =>
        tell({ kind: "progress", id, done: finite(done), total: finite(total), message: String(message) }),
    });
    tell({ kind: "answer", id, answer: { kind: "result", resultJson: jsonFromResult(value) } });
  } catch (error) {
    createLog(id).error(detailFromError(error));
    tell({ kind: "answer", id, answer: { kind: "error", error: textFromError(error) } });
  } finally {
    calls.delete(id);
  }
}

function createRegistry(id: number) {
  // JSON, in the form that `subscriptions/agent-tools.ts` gives it
  const list = async () => (await ask(id, { kind: "list tools" })) as unknown as RegisteredTool[];
  return {
    list,
    get: async (name: string) => (await list()).find((tool) => tool.name === name || tool.reference === name),
    call: (name: string, args: JsonObject = {}) =>
      ask(id, { kind: "call tool", name, argumentsJson: JSON.stringify(args) }),
  };
}

async function ask(id: number, what: Ask): Promise<Json> {
  for (const [name, value] of Object.entries(what))
    if (typeof value !== "string") throw new TypeError(`${name} must be a text`);
  const askId = ++lastAskId;
  const reply = Promise.withResolvers<Json>();
  asks.set(askId, reply);
  tell({ kind: "ask", askId, id, ask: what });
  try {
    return await reply.promise;
  } finally {
    asks.delete(askId);
  }
}

function createLog(id?: number): HostedLog {
  const at =
    (level: keyof HostedLog) =>
    (message: string, fields?: JsonObject): void =>
      tell({
        kind: "log",
        ...(id !== undefined && { id }),
        level,
        message: String(message),
        fieldsJson: JSON.stringify(fields) ?? "",
      });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function jsonFromResult(value: unknown): string {
  try {
    const json = JSON.stringify(value ?? null);
    if (json === undefined) throw new Error(`it is a ${typeof value}`);
    return json;
  } catch (error) {
    throw new ResultError(`the result is not JSON: ${messageFromUnknown(error)}`);
  }
}

function textFromError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return String(error);
    const isPlain = error instanceof ResultError || error instanceof Failure || error.name === "Error";
    const cause = error.cause === undefined ? "" : `: ${messageFromUnknown(error.cause)}`; // as that of "fetch failed"
    return `${isPlain ? "" : `${error.name}: `}${error.message}${cause}`;
  } catch {
    return "an error without a text";
  }
}

/** Where it was thrown, and why: for logs. Nothing else that errors have: clients of HTTP leave their tokens and answers there. */
function detailFromError(error: unknown): string {
  try {
    const texts: string[] = [];
    for (let next = error; texts.length < MAX_TOLD_ERRORS; ) {
      texts.push((next instanceof Error && next.stack) || textFromError(next));
      next = next instanceof AggregateError ? next.errors[0] : next instanceof Error ? next.cause : undefined;
      if (next === undefined) break;
    }
    return texts.join("\nbecause of: ");
  } catch {
    return textFromError(error);
  }
}

/** JSON has no other numbers: 0 means unknown. */
function finite(count: number): number {
  return Number.isFinite(count) ? count : 0;
}
