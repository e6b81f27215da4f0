// The lines between pool and worker, or hosted module; docs/worker-protocol.md describes them for those who write the other end.

import { hasMoreValues, maxToolValues, toolJsonFrom, tooMany } from "#runtime/schema/json/json-size.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Answer } from "../calls/answer.ts";
import { lineOfJson } from "../calls/json-line.ts";

/** A worker of another version is refused. */
export const PROTOCOL = 1;

/** SEC-5: so much of what one call asks is carried out at a time. Workers and modules hold back what is more. */
export const MOST_ASKS = 16;

/** What a request tells besides its id. The JSON texts are written as they are. */
export interface CallRequest {
  function: string;
  argumentsJson: string;
  configJson: string;
  secretsJson: string;
  /** Equal for each execution of one call, for tools that do once what they are asked twice (LOOP-14). */
  idempotencyKey: string;
}

export interface Progress {
  done: number;
  total: number;
  message: string;
}

/** What a call asks of the agent on whose behalf it is made: another tool of it, what tools it has, or its model. */
export type Ask =
  | { kind: "call tool"; name: string; argumentsJson: string }
  | { kind: "list tools" }
  | { kind: "generate"; prompt: string; instructions: string; agent: string };

export type Frame =
  /** `tools` is what a module says of its own. */
  | { kind: "ready"; protocol: number; pid: number; tools?: unknown; initializes?: boolean }
  | { kind: "fatal"; reason: string }
  | { kind: "progress"; id: number; progress: Progress }
  /** `askId` is the worker's own. */
  | { kind: "ask"; id: number; askId: number; ask: Ask }
  /** `logLines` tells how many lines of the call went to stderr before. */
  | { kind: "result"; id: number; resultJson: string; logLines: number }
  | { kind: "error"; id: number; error: string; logLines: number };

export function lineFromRequest(id: number, request: CallRequest): string {
  const { argumentsJson, configJson, secretsJson, idempotencyKey } = request;
  const words = `"function":${JSON.stringify(request.function)},"kwargs":${argumentsJson}`;
  const surroundings = `"config":${configJson},"secrets":${secretsJson},"idempotency_key":${JSON.stringify(idempotencyKey)}`;
  return lineOfJson(`{"id":${id},${words},${surroundings}}`);
}

export function lineFromCancel(id: number): string {
  return `{"cancel":${id}}\n`;
}

/** What another tool answered. */
export function lineFromReply(askId: number, answer: Answer): string {
  const [result, error] =
    answer.kind === "result" ? [answer.resultJson, "null"] : ["null", JSON.stringify(answer.error)];
  return lineOfJson(`{"reply":${askId},"result":${result},"error":${error}}`);
}

/** Undefined for a line that is no frame of the protocol. */
export function parseFrame(line: string): Frame | undefined {
  const frame = toolJsonFrom(line);
  if (!isObject(frame)) return unreadAnswer(line);
  if (frame.ready === true) return readyFrom(frame);
  if (typeof frame.fatal === "string") return { kind: "fatal", reason: frame.fatal };
  if (typeof frame.id !== "number") return undefined;
  if (isObject(frame.progress)) return { kind: "progress", id: frame.id, progress: progressFrom(frame.progress) };
  if (typeof frame.ask === "number") {
    const ask = askFrom(line, frame);
    return ask && { kind: "ask", id: frame.id, askId: frame.ask, ask };
  }
  const logLines = numberOr(frame.logs, 0);
  if (typeof frame.error === "string") return { kind: "error", id: frame.id, error: frame.error, logLines };
  if (!("result" in frame)) return undefined;
  return { kind: "result", id: frame.id, resultJson: resultJsonFrom(line, frame), logLines };
}

/**
 * The text of the result as the worker wrote it, so that numbers keep digits that JavaScript would lose. The members stand in
 * the order of the protocol in every line of the SDK; for any other order the text is written again.
 */
function resultJsonFrom(line: string, frame: Record<string, unknown>): string {
  const members = Object.keys(frame).join();
  const start = /^\{"id":\d+,"result":/.exec(line);
  const end = ANSWER_END.exec(line.slice(-64));
  if (!start || !end || (members !== "id,result,error" && members !== "id,result,error,logs"))
    return JSON.stringify(frame.result);
  return line.slice(start[0].length, line.length - end[0].length);
}

const ANSWER_END = /,"error":null(?:,"logs":(\d+))?\}$/;

/** A result of more values than are read: the error of its call, and of no other. */
function unreadAnswer(line: string): Frame | undefined {
  const [, id] = /^\{"id":(\d+),"result":/.exec(line) ?? [];
  const end = ANSWER_END.exec(line.slice(-64));
  if (id === undefined || !end || !hasMoreValues(line, maxToolValues)) return undefined;
  const error = `the result has ${tooMany(maxToolValues)}`;
  return { kind: "error", id: Number(id), error, logLines: Number(end[1] ?? 0) };
}

/** The text of the arguments as the worker wrote it, for the same reason. */
function askFrom(
  line: string,
  { id: _, ask: __, tool, arguments: given = {}, ...more }: Record<string, unknown>,
): Ask | undefined {
  if (more.list === true) return { kind: "list tools" };
  if (isObject(more.generate)) return generateFrom(more.generate);
  if (typeof tool !== "string" || !isObject(given)) return undefined;
  const start = /^\{"id":\d+,"ask":\d+,"arguments":/.exec(line);
  const isWhole = start !== null && Object.keys(more).length === 0;
  const argumentsJson = isWhole ? line.slice(start[0].length, line.lastIndexOf(',"tool":')) : JSON.stringify(given);
  return { kind: "call tool", name: tool, argumentsJson };
}

function generateFrom({ prompt, instructions = "", agent = "" }: Record<string, unknown>): Ask | undefined {
  if (typeof prompt !== "string" || typeof instructions !== "string" || typeof agent !== "string") return undefined;
  return { kind: "generate", prompt, instructions, agent };
}

const numberOr = (value: unknown, otherwise: number) => (typeof value === "number" ? value : otherwise);

function readyFrom({ pid, protocol = 1, tools, initializes }: Record<string, unknown>): Frame {
  const ready = { kind: "ready", protocol: numberOr(protocol, Number.NaN), pid: numberOr(pid, 0) } as const; // the first version told no number
  return tools === undefined ? ready : { ...ready, tools, initializes: initializes === true };
}

function progressFrom({ done, total, message }: Record<string, unknown>): Progress {
  return { done: numberOr(done, 0), total: numberOr(total, 0), message: typeof message === "string" ? message : "" };
}
