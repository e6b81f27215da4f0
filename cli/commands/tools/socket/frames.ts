/*
 * JSON-RPC 2.0 over a unix socket, a message a line (CTR-9).
 *
 *   agent  → socket   {"jsonrpc":"2.0","id":1,"method":"caller_tool","params":{"tool":"notify","arguments":{}}}
 *   socket → agent    {"jsonrpc":"2.0","id":1,"result":…}   or   …"error":{"code":-32001,"message":"…"}}
 *   socket → agent    {"jsonrpc":"2.0","method":"caller_tools_config","params":{"caller_id":"app","tools":[…]}}
 *
 * A frame without `jsonrpc` and `id` is a request too, whose answer has `"id":null`.
 */

import { z } from "zod";
import { isLongNumber, parseExactly } from "#runtime/schema/json/exact-json.ts";

export const codes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  toolError: -32_001,
  timeout: -32_002,
  connectionLost: -32_003,
} as const;

/** An object is a number that no double holds. */
export type FrameId = string | number | object | null;

/** What a request is refused with, or what became of its call. */
export class FrameFault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const idSchema = z.union([z.string(), z.number(), z.null(), z.custom<object>(isLongNumber)]);
const isNoNumber = (given: unknown): boolean => !isLongNumber(given);
const argumentsSchema = z.unknown().refine(isNoNumber).pipe(z.record(z.string(), z.unknown()));

const configSchema = z.object({
  caller_id: z.string(),
  tools: z.array(z.object({ name: z.string(), description: z.string().optional(), inputSchema: argumentsSchema })),
});
export type CallerToolsConfig = z.infer<typeof configSchema>;

/** What the socket says: an answer, or what the caller declares. */
export const saidSchema = z.union([
  z.object({ method: z.literal("caller_tools_config"), params: configSchema }),
  z.object({ id: idSchema, error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ id: idSchema, result: z.unknown() }),
]);

/** As the agent sees the tool (CTR-2). */
export function prefixedName(callerId: string, tool: string): string {
  return `${callerId}_${tool}`;
}

export interface CallFrame {
  readonly tool: string;
  readonly argumentsJson: string;
}

/** A line as JSON, in which numbers keep their digits. Throws a `FrameFault`. */
export function parseFrame(line: string): Record<string, unknown> {
  let frame: unknown;
  try {
    frame = parseExactly(line);
  } catch (error) {
    throw new FrameFault(codes.parseError, `the line is no JSON: ${(error as Error).message}`);
  }
  const { success, data } = argumentsSchema.safeParse(frame);
  if (success) return data;
  throw new FrameFault(codes.invalidRequest, "a request is one JSON object on one line");
}

/** Undefined for a notification, which gets no answer. */
export function idOfFrame(frame: Record<string, unknown>): FrameId | undefined {
  if (!("id" in frame)) return "jsonrpc" in frame ? undefined : null;
  const { success, data } = idSchema.safeParse(frame.id);
  if (success) return data;
  throw new FrameFault(codes.invalidRequest, "the id of a request is a text, a number or null");
}

/** Throws a `FrameFault` for what is no call. */
export function callOfFrame({ jsonrpc = "2.0", method, params }: Record<string, unknown>): CallFrame {
  if (jsonrpc !== "2.0") throw new FrameFault(codes.invalidRequest, 'jsonrpc is "2.0", or absent');
  if (typeof method !== "string") throw new FrameFault(codes.invalidRequest, "the request names no method");
  if (method !== "caller_tool") {
    throw new FrameFault(codes.methodNotFound, `there is no method ${JSON.stringify(method)}, only "caller_tool"`);
  }
  const given = z.object({ tool: z.string().min(1), arguments: argumentsSchema.default({}) }).safeParse(params);
  if (!given.success) {
    const text = 'params are {"tool":"<name without prefix>","arguments":{…}}';
    throw new FrameFault(codes.invalidParams, `${text}: ${z.prettifyError(given.error)}`);
  }
  return { tool: given.data.tool, argumentsJson: JSON.stringify(given.data.arguments) };
}

/** The result goes on as the text that it is, on one line. */
export function resultLine(id: FrameId, resultJson: string): string {
  const result = resultJson.replace(/[\r\n]/g, " "); // outside of texts, where JSON writes them as escapes
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`;
}

export function errorLine(id: FrameId, { code, message }: Pick<FrameFault, "code" | "message">): string {
  return `${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`;
}

export function configLine(config: CallerToolsConfig): string {
  return `${JSON.stringify({ jsonrpc: "2.0", method: "caller_tools_config", params: config })}\n`;
}

export function callLine(id: FrameId, tool: string, given: Record<string, unknown>): string {
  return `${JSON.stringify({ jsonrpc: "2.0", id, method: "caller_tool", params: { tool, arguments: given } })}\n`;
}
