import { randomUUID } from "node:crypto";
import type { JSONRPCMessage, MessageExtraInfo, Transport } from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { mayLoseDigits, parseExactly } from "#runtime/schema/json/exact-json.ts";
import { maxToolValues, parseBounded } from "#runtime/schema/json/json-size.ts";
import { isObject } from "#runtime/schema/json-object.ts";

/** A channel of JSON texts, one message each: open, send, receive, close. */
export interface Channel {
  send(text: string): Promise<void>;
  /** Ends when the other side is gone. */
  receive(): AsyncIterable<string>;
  /** Resolves when the other side is gone, its processes too. */
  close(): Promise<void>;
}

/**
 * A channel as the SDK wants it. `pid` and `stderr` are what the SDK knows a local channel by: there, silence on the question
 * for the revision means an old server, and no outage.
 */
export function transportFromChannel(channel: Channel, pid: number | null = null): Transport & { pid: number | null } {
  return new ChannelTransport(channel, pid);
}

class ChannelTransport implements Transport {
  readonly pid: number | null;
  readonly stderr = null;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;
  readonly #channel: Channel;
  #closed: Promise<void> | undefined;

  constructor(channel: Channel, pid: number | null) {
    this.#channel = channel;
    this.pid = pid;
  }

  async start(): Promise<void> {
    void this.#receive();
  }

  send(message: JSONRPCMessage): Promise<void> {
    return this.#channel.send(JSON.stringify(message));
  }

  close(): Promise<void> {
    this.#closed ??= this.#channel.close();
    return this.#closed;
  }

  /** A channel that ends, for whatever reason, is closed, so that nothing of it is left. */
  async #receive(): Promise<void> {
    const slice = openSlices(randomUUID());
    try {
      for await (const text of this.#channel.receive()) {
        for (const message of messagesFrom(text)) {
          await slice(); // one that floods leaves others their time
          if (message) this.onmessage?.(message);
          else this.onerror?.(new Error(`not a message of MCP: ${text.slice(0, 200)}`)); // servers print what does not belong there
        }
      }
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(messageFromUnknown(error)));
    }
    await this.close().catch((error: Error) => this.onerror?.(error)); // first, so that how it ended is known
    this.onclose?.();
  }
}

/**
 * One, or those of a batch (2025-03-26); undefined for what is none. Of which kind a message is, and whether it has what its kind needs,
 * the SDK judges itself. A result says by itself that it is one, whatever version it names.
 */
export function messagesFrom(text: string): (JSONRPCMessage | undefined)[] {
  if (text.trim() === "") return [];
  try {
    const parsed: unknown[] = [parseBounded(text, maxToolValues)].flat();
    const exact: unknown[] = mayLoseDigits(text) ? [parseExactly(text)].flat() : parsed;
    return parsed.map((message, index) => {
      if (!isObject(message)) return undefined;
      const isAnswer = message.id !== undefined && !("method" in message);
      if (isAnswer && isObject(message.result)) return exact[index] as JSONRPCMessage;
      return message.jsonrpc === "2.0" ? (message as unknown as JSONRPCMessage) : undefined;
    });
  } catch (error) {
    const [, id] = ANSWER_BEGIN.exec(text) ?? [];
    return [id === undefined ? undefined : unreadable(JSON.parse(id), `no JSON: ${messageFromUnknown(error)}`)];
  }
}

/** By this much it is known whose answer a text is that is no JSON, as where Python writes `NaN`. */
const ANSWER_BEGIN =
  /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+|"[\w-]{1,64}")\s*,(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"(?:result|error)"/;

/** What is known to be the answer to a request, and cannot be read. */
export function unreadable(id: unknown, why: string): JSONRPCMessage {
  return {
    jsonrpc: "2.0",
    id,
    error: { code: -32_603, message: `the server's answer cannot be read: it is ${why}` },
  } as JSONRPCMessage;
}
