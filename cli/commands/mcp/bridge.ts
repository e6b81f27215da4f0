import {
  isJSONRPCRequest,
  isSpecType,
  type JSONRPCMessage,
  type JSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  type RequestId,
  type StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";

/*
 * Passes the messages of an MCP client on stdin and stdout to the gateway and back, as they are, whatever revision they are of:
 *
 * bridge-1  Each request is answered: what cannot be sent, or is never answered, with an error that says why. So is what is no message,
 *           but for an answer: to that none is due.
 * bridge-2  A gateway that is away for a while is waited for; nothing is sent twice that may have arrived.
 * bridge-3  In 2026-07-28 a client cancels over HTTP by leaving; on stdin it says so, as before.
 * bridge-4  What a client writes behind `initialize` waits for its answer, which names the session. A client that closes stdin is still
 *           answered what it had asked, but for a stream of changes, which would only end with it.
 */

const PATIENCE_MS = 15_000;

export interface Bridge {
  /** Takes a line of the client: a message, or several in a list, as 2025-03-26 has them. */
  take(line: string): void;
  /** Resolves when no request waits for its answer (bridge-4). */
  idle(): Promise<void>;
  /** Answers what cannot be read, and all that waits, with the reason; what the gateway still says is not told. */
  giveUp(reason: string): Promise<void>;
}

export function connect(near: Pick<Transport, "send" | "onerror">, far: StreamableHTTPClientTransport): Bridge {
  const leaving = new Map<RequestId, AbortController>();
  const waiting = new Map<RequestId, PromiseWithResolvers<void> & { readonly isStream: boolean }>();
  let handshake: RequestId | undefined;

  const pass = (message: JSONRPCMessage) => {
    const canceled = canceledBy(message);
    const left = canceled === undefined ? undefined : leaving.get(canceled);
    end(canceled);
    if (left)
      left.abort(); // bridge-3
    else void forward(message);
  };
  far.onmessage = (message) => {
    if ("id" in message && message.id !== undefined && !("method" in message)) {
      if (message.id === handshake && "result" in message)
        far.setProtocolVersion(String(message.result.protocolVersion));
      end(message.id);
    }
    void tell(message);
  };

  function end(id: RequestId | undefined): void {
    if (id === undefined) return;
    leaving.delete(id);
    waiting.get(id)?.resolve();
    waiting.delete(id);
  }

  async function forward(message: JSONRPCMessage): Promise<void> {
    const request = isJSONRPCRequest(message) ? message : undefined;
    const isStream = request?.method === "subscriptions/listen";
    if (request) waiting.set(request.id, { ...Promise.withResolvers(), isStream });
    if (request?.method === "initialize") handshake = request.id;
    else if (handshake !== undefined) await waiting.get(handshake)?.promise;
    else if (request?.method === "ping" && !isModern(request)) return answerPing(request); // HTTP has none without a session
    if (request && !waiting.has(request.id)) return;
    const left = new AbortController();
    if (request && isModern(request)) leaving.set(request.id, left);
    const lost = () => request && fail(request, "the gateway ended the request without an answer");
    const send = () => far.send(message, { requestSignal: left.signal, onRequestStreamEnd: () => void lost() });
    try {
      await retryWhile(isRefused, send, { patienceMs: PATIENCE_MS, initialMs: 100, maxMs: 1_000 });
    } catch (error) {
      if (request && !left.signal.aborted) await fail(request, reasonOf(error));
    }
  }

  async function fail({ id }: Pick<JSONRPCRequest, "id">, message: string): Promise<void> {
    if (!waiting.has(id)) return;
    end(id);
    await tell({ jsonrpc: "2.0", id, error: { code: -32_000, message } }); // bridge-1
  }

  function answerPing({ id }: JSONRPCRequest): Promise<void> {
    end(id);
    return tell({ jsonrpc: "2.0", id, result: {} });
  }

  const tell = (message: JSONRPCMessage) => near.send(message).catch(() => {}); // the client has left

  return {
    take(line) {
      if (line.trim() === "") return;
      for (const message of messagesIn(line)) {
        if (isSpecType.JSONRPCMessage(message)) pass(message);
        else if (isAnswer(message)) near.onerror?.(new Error("an answer of the client is none of JSON-RPC 2.0"));
        else void tell(message === undefined ? NO_JSON : noMessage(message));
      }
    },
    async idle() {
      const open = () => [...waiting.values()].filter(({ isStream }) => !isStream);
      while (open().length > 0) await Promise.all(open().map(({ promise }) => promise));
    },
    async giveUp(reason) {
      delete far.onmessage;
      await tell(refusal(reason));
      const text = `${reason}; what was sent before may have happened`;
      await Promise.all([...waiting.keys()].map((id) => fail({ id }, text)));
    },
  };
}

function messagesIn(line: string): unknown[] {
  try {
    const value: unknown = JSON.parse(line);
    return (Array.isArray(value) && value.length > 0 ? value : [value]).map(withoutNull);
  } catch {
    return [undefined];
  }
}

const NO_JSON: JSONRPCMessage = { jsonrpc: "2.0", error: { code: -32_700, message: "the line is not JSON" } };

/** Some clients write both fields of an answer, the error as null. */
function withoutNull(value: unknown): unknown {
  const { error, ...answer } = fieldsOf(value);
  return error === null && "result" in answer ? answer : value;
}

function isAnswer(value: unknown): boolean {
  const fields = fieldsOf(value);
  return !("method" in fields) && ("result" in fields || "error" in fields);
}

/** Under its id only where it is meant as a request: other ids are not the client's own. */
function noMessage(value: unknown): JSONRPCMessage {
  const { id, method } = fieldsOf(value);
  const isNamed = typeof method === "string" && (typeof id === "string" || typeof id === "number");
  return { ...refusal("it is no message of JSON-RPC 2.0"), ...(isNamed && { id }) };
}

function refusal(message: string) {
  return { jsonrpc: "2.0" as const, error: { code: -32_600, message } };
}

function isModern({ params }: JSONRPCRequest): boolean {
  return params?._meta?.[PROTOCOL_VERSION_META_KEY] !== undefined;
}

function canceledBy(message: JSONRPCMessage): RequestId | undefined {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined;
  const { requestId } = message.params ?? {};
  return typeof requestId === "string" || typeof requestId === "number" ? requestId : undefined;
}

/** Nobody has the connection that it would have gone by (bridge-2). */
function isRefused(error: unknown): boolean {
  const { cause } = error instanceof Error ? error : {};
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

/** What the gateway says, where it does. */
function reasonOf(error: unknown): string {
  const text = messageFromUnknown(error);
  try {
    return String(JSON.parse(text.slice(text.indexOf("{"))).error.message);
  } catch {
    return text;
  }
}
