// The program of one hosted module's process. Everything that the module does happens here, so that a loop without end, an
// exception that nobody caught, or `process.exit` ends this process and nothing else.

import { Socket } from "node:net";
import { pathToFileURL } from "node:url";
import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { hasMoreValues, maxToolValues, tooMany } from "#runtime/schema/json/json-size.ts";
import type { HostedLog, HostedModule, Json, JsonObject, RegisteredTool } from "../../../../sdk/typescript/hosted.ts";
import { MOST_ASKS, PROTOCOL } from "../../worker/frames.ts";
import { INITIALIZE, parseModule } from "./module-form.ts";

class ResultError extends Error {}

/** From the pool. */
type Received =
  | { cancel: number }
  | { reply: number; result: Json; error: string | null }
  | {
      id: number;
      function: string;
      kwargs: JsonObject;
      config: JsonObject;
      secrets: Record<string, string>;
      idempotency_key: string;
    };

/** An error may be its own cause. */
const MAX_TOLD_ERRORS = 5;

const calls = new Map<number, AbortController>();
const asks = new Map<number, PromiseWithResolvers<Json>>();
/** By the ids of the calls. */
const turns = new RoundRobinQueue(Number.POSITIVE_INFINITY, MOST_ASKS);
let lastAskId = 0;
let module: HostedModule | undefined;

const [input, output] = [new Socket({ fd: 3 }), new Socket({ fd: 4 })];
const tell = (frame: object): void => void output.write(`${JSON.stringify(frame)}\n`);

process.on("uncaughtExceptionMonitor", (error) => {
  const endsProcess = process.listenerCount("uncaughtException") === 0; // the module may catch what nobody else does
  if (endsProcess) tell({ fatal: textFromError(error) });
});
const [path = ""] = process.argv.splice(2);
void load(pathToFileURL(path).href);
for await (const line of readLines(input)) void take(JSON.parse(line) as Received);
await shutdown();
process.exit(); // the service is gone, or has let go of it

async function load(url: string): Promise<void> {
  try {
    const loaded: { default?: unknown } = await import(url);
    module = parseModule(loaded.default);
    const initializes = module.initialize !== undefined;
    const tools = module.tools.map(({ run: _, ...described }) => described);
    tell({ ready: true, protocol: PROTOCOL, pid: process.pid, tools, initializes });
  } catch (error) {
    // Where an ES module has no syntax, Node tells no program, but prints it when it ends the process.
    if (error instanceof SyntaxError && !error.stack?.includes(path)) throw error;
    console.error(detailFromError(error));
    output.write(`${JSON.stringify({ fatal: textFromError(error) })}\n`, () => process.exit(1));
  }
}

async function take(frame: Received): Promise<void> {
  if ("id" in frame) return run(frame);
  if ("cancel" in frame) {
    tell({ id: frame.cancel, progress: {} }); // this process does not stand in a loop
    return calls.get(frame.cancel)?.abort(new Error("nobody waits for the call any more"));
  }
  const { reply, result, error } = frame;
  if (error === null) asks.get(reply)?.resolve(result);
  else asks.get(reply)?.reject(new Error(error));
}

async function shutdown(): Promise<void> {
  try {
    await module?.shutdown?.();
  } catch (error) {
    createLog().error(`shutdown failed: ${textFromError(error)}`);
  }
}

async function run({ id, function: name, ...given }: Extract<Received, { id: number }>): Promise<void> {
  const abort = new AbortController();
  calls.set(id, abort);
  try {
    const value =
      name === INITIALIZE ? module?.initialize?.({ log: createLog() }) : call(id, name, given, abort.signal);
    output.write(`{"id":${id},"result":${jsonFromResult(await value)},"error":null}\n`);
  } catch (error) {
    createLog(id).error(detailFromError(error));
    tell({ id, result: null, error: textFromError(error) });
  } finally {
    calls.delete(id);
  }
}

type Given = Omit<Extract<Received, { id: number }>, "id" | "function">;

async function call(id: number, name: string, given: Given, signal: AbortSignal): Promise<unknown> {
  const { kwargs, config, secrets, idempotency_key: callId } = given;
  const tool = module?.tools.find((tool) => tool.name === name);
  if (!tool) throw new Error(`the module offers no tool ${name} any more`);
  return tool.run(kwargs, {
    ...{ callId, signal, config, secrets },
    log: createLog(id),
    registry: createRegistry(id),
    model: {
      generate: async ({ prompt, instructions = "", agent = "" }) =>
        (await ask(id, { generate: texts({ prompt, instructions, agent }) })) as { text: string },
    },
    progress: (done, total = 0, message = "") =>
      tell({ id, progress: { done: finite(done), total: finite(total), message: String(message) } }),
  });
}

function createRegistry(id: number) {
  // JSON, in the form that `subscriptions/agent-tools.ts` gives it
  const list = async () => (await ask(id, { list: true })) as unknown as RegisteredTool[];
  return {
    list,
    get: async (name: string) => (await list()).find((tool) => tool.name === name || tool.reference === name),
    async call(name: string, args: JsonObject = {}) {
      const json = JSON.stringify(args);
      if (!json?.startsWith("{")) throw new TypeError("arguments must be an object");
      if (hasMoreValues(json, maxToolValues)) throw new RangeError(`the arguments have ${tooMany(maxToolValues)}`);
      return ask(id, { arguments: args, tool: texts({ name }).name });
    },
  };
}

/** What a module gives in place of a text would be no frame. */
function texts<T extends Record<string, string>>(given: T): T {
  for (const [name, value] of Object.entries(given))
    if (typeof value !== "string") throw new TypeError(`${name} must be a text`);
  return given;
}

function ask(id: number, what: object): Promise<Json> {
  return turns.run(String(id), () => askNow(id, what), calls.get(id)?.signal);
}

async function askNow(id: number, what: object): Promise<Json> {
  const askId = ++lastAskId;
  const reply = Promise.withResolvers<Json>();
  asks.set(askId, reply);
  try {
    tell({ id, ask: askId, ...what });
    return await reply.promise;
  } finally {
    asks.delete(askId);
  }
}

/** Among the frames, so that none comes after its call's answer. */
function createLog(id?: number): HostedLog {
  const at =
    (level: keyof HostedLog) =>
    (message: string, fields?: JsonObject): void =>
      tell({ toolbus: "log", time: Date.now() / 1_000, level, message: String(message), id, fields });
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
