import { isIP } from "node:net";
import { Agent, buildConnector, request } from "undici";
import { Effect, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { type Answer, canceled, failure, outcomeUnknown, success, successJson } from "../answer.ts";
import { openEnding } from "../ending.ts";
import type { ToolEntry } from "../tool-set.ts";
import type { AddressGuard } from "./address-guard.ts";
import type { Deadline } from "./deadline.ts";
import { tellingStart } from "./watched-dispatcher.ts";

/** TOOL-3: calls of URLs over pooled connections that lead only where the guard allows. */
export interface Gateway extends AsyncDisposable {
  execute(entry: ToolEntry, args: Record<string, unknown>, deadline: Deadline, signal: AbortSignal): Promise<Answer>;
}

export interface GatewayOptions {
  guard: AddressGuard;
  /** By name, for `${secret:NAME}` in header values. */
  secrets: ReadonlyMap<string, string>;
  maxResponseBytes: number;
}

const MAX_REDIRECTS = 5;
const MAX_TOLD_BYTES = 2_000;

interface Outgoing {
  url: URL;
  method: string;
  headers: Record<string, string>;
  body: string | null;
}

interface Trip {
  readonly signal: AbortSignal;
  /** Whether a request has gone out that a server may have carried out. */
  mayHaveActed: boolean;
}

export function openGateway(options: GatewayOptions): Gateway {
  const { guard, secrets, maxResponseBytes } = options;
  // the call's own deadline ends it, and nothing before that
  const patience = { headersTimeout: 0, bodyTimeout: 0 };
  const agent = new Agent({ connect: guardedConnector(guard), connections: 64, ...patience });

  const execute: Gateway["execute"] = async ({ tool, effect }, args, deadline, signal) => {
    using timeout = timeoutSignal(Math.max(1, deadline.timeoutMs));
    using ending = openEnding(signal, timeout);
    const trip: Trip = { signal: ending.signal, mayHaveActed: false };
    try {
      return await follow(firstRequest(tool, args, secrets), trip);
    } catch (error) {
      if (timeout.aborted) return failure(`Tool timed out after ${deadline.timeoutMs}ms`);
      if (signal.aborted) return canceled(effect);
      const [name, cause] = [JSON.stringify(tool.name), messageFromUnknown(error)];
      if (trip.mayHaveActed && effect === Effect.AT_MOST_ONCE) return outcomeUnknown(`${name} was called: ${cause}`);
      return failure(`${name} cannot be called: ${cause}`);
    }
  };

  /** Each hop is a request of its own, which the guard judges like the first. */
  async function follow(first: Outgoing, trip: Trip): Promise<Answer> {
    let outgoing = first;
    const { signal } = trip;
    const dispatcher = tellingStart(agent, () => {
      trip.mayHaveActed = true;
    });
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const { url, method, headers, body } = outgoing;
      const response = await request(url, { method, headers, body, signal, dispatcher });
      const location = response.headers.location;
      const isRedirect = [301, 302, 303, 307, 308].includes(response.statusCode) && typeof location === "string";
      if (!isRedirect) return answerFrom(response.statusCode, await boundedText(response.body, maxResponseBytes));
      await response.body.dump();
      const isSameElsewhere = response.statusCode > 303 || method === "GET";
      if (isSameElsewhere) trip.mayHaveActed = false; // whoever sends it on has not carried it out
      outgoing = redirected(outgoing, response.statusCode, location);
    }
    return failure(`more than ${MAX_REDIRECTS} redirects`);
  }

  return { execute, [Symbol.asyncDispose]: () => agent.destroy() };
}

function guardedConnector(guard: AddressGuard): buildConnector.connector {
  const connect = buildConnector({ timeout: 10_000 });
  return (target, callback) => {
    const port = Number(target.port) || (target.protocol === "https:" ? 443 : 80);
    guard.resolve(target.hostname, port).then(
      ([first]) => {
        const name = target.servername || target.hostname;
        connect({ ...target, hostname: first!.address, ...(isIP(name) === 0 && { servername: name }) }, callback);
      },
      (error: Error) => callback(error, null),
    );
  };
}

function firstRequest(tool: Tool, args: Record<string, unknown>, secrets: ReadonlyMap<string, string>): Outgoing {
  const { url: text = "", method: given = "", headers: templates = {} } = tool.execution ?? {};
  const url = new URL(text);
  refuseUnfit(url);
  const method = given || "POST";
  const headers: Record<string, string> = { accept: "application/json, text/*;q=0.9, */*;q=0.1" };
  for (const [name, template] of Object.entries(templates))
    headers[name.toLowerCase()] = withSecrets(template, secrets);
  if (method !== "GET")
    return { url, method, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(args) };
  for (const [name, value] of Object.entries(args)) {
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, textOf(one));
  }
  return { url, method, headers, body: null };
}

function refuseUnfit(url: URL): void {
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new Error(`${url.protocol} URLs are not called`);
  if (url.username !== "" || url.password !== "") throw new Error("the URL holds a user or a password: use a header");
}

function textOf(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

export function withSecrets(template: string, secrets: ReadonlyMap<string, string>): string {
  return template.replace(/\$\{secret:([A-Za-z0-9_]+)\}/g, (_, name: string) => {
    const secret = secrets.get(name);
    if (secret === undefined)
      throw new Error(`the secret ${name} is not set: give TOOLBUS_SECRET_${name} to the tool router`);
    return secret;
  });
}

/** What was meant for one origin only, the configured headers with their secrets, does not travel to another. */
function redirected(from: Outgoing, status: number, location: string): Outgoing {
  const url = new URL(location, from.url);
  refuseUnfit(url);
  const becomesGet = status === 303 || ((status === 301 || status === 302) && from.method === "POST");
  const body = becomesGet ? null : from.body;
  const { accept = "*/*", "content-type": type = "application/json" } = from.headers;
  const bare: Record<string, string> = body === null ? { accept } : { accept, "content-type": type };
  const headers = url.origin === from.url.origin ? from.headers : bare;
  return { url, method: becomesGet ? "GET" : from.method, headers, body };
}

/** Text is passed on as a JSON string, JSON as it is. */
function answerFrom(status: number, text: string): Answer {
  if (status < 200 || status > 299) return failure(`HTTP ${status}: ${text.slice(0, MAX_TOLD_BYTES)}`);
  if (text === "") return success(null);
  try {
    JSON.parse(text);
    return successJson(text);
  } catch {
    return success(text); // no JSON: the text is the result
  }
}

async function boundedText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the response is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
