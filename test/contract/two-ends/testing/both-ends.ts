// A bus with both ends on it: ours, and the peer's by another client library.

import { connect, type NatsConnection, nkeyAuthenticator } from "nats";
import { openTestBus, type TestBus } from "../../../harness/bus.ts";
import { decodeFrame, type Frame } from "../../independent-peer/frames/frame.ts";

export interface Seen {
  readonly subject: string;
  readonly reply: string;
  /** Header lines, without those that differ from run to run. */
  readonly headers: readonly string[];
  readonly payload: string;
  readonly frame: Frame | undefined;
}

interface Watch extends AsyncDisposable {
  readonly seen: readonly Seen[];
}

export interface BothEnds extends AsyncDisposable {
  readonly bus: TestBus;
  /** One more connection of the peer's library. */
  connectPeer(): Promise<NatsConnection>;
  /** All messages of calls, as they pass. While it watches, every call has a responder. */
  watch(): Promise<Watch>;
}

const patient = { maxReconnectAttempts: -1, reconnectTimeWait: 100 };

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

export async function openBothEnds(): Promise<BothEnds> {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openTestBus());
  const connectPeer = async () => {
    const { url, login } = bus.server;
    const authenticator = nkeyAuthenticator(Buffer.from(login.seed));
    return opened.adopt(await connect({ servers: url, authenticator, ...patient }), (connection) => connection.close());
  };
  const opened = stack.use(new AsyncDisposableStack());
  const watch = async () => {
    const seen: Seen[] = [];
    const observer = await connectPeer();
    for (const subject of ["_INBOX.>", "toolbus.rpc.>"]) {
      observer.subscribe(subject, {
        callback: (_failure, { subject, reply = "", headers, data }) => {
          const lines = [...(headers ?? [])].flatMap(([key, values]) => values.map((value) => `${key}: ${value}`));
          const isOpening = subject.startsWith("toolbus.");
          const frame = isOpening ? undefined : decodeFrame(data);
          seen.push({ subject, reply, headers: lines, payload: hex(data), frame });
        },
      });
    }
    await observer.flush();
    return { seen, [Symbol.asyncDispose]: () => observer.close() };
  };
  const owned = stack.move();
  return { bus, connectPeer, watch, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

export const heartbeatsOf = (seen: readonly Seen[], inbox: string | undefined) =>
  seen.filter((one) => one.subject === inbox && one.frame?.kind === 6).length;

/** Bytes of which every part differs from every other. */
export function largeValue(bytes: number): Uint8Array {
  const words = Uint32Array.from({ length: bytes / 4 }, (_, index) => index * 2_654_435_761);
  return new Uint8Array(words.buffer);
}

export const one = { value: Uint8Array.of(1) };
export const two = { value: Uint8Array.of(2) };
export const values = (messages: readonly { value: Uint8Array }[]) => messages.map(({ value }) => [...value]);

/** What the call fails with, which has to be of this class. */
export async function failureOf<E extends Error>(
  kind: abstract new (...given: never[]) => E,
  call: AsyncIterable<unknown> | Promise<unknown>,
): Promise<E> {
  const [outcome] = await Promise.allSettled([call instanceof Promise ? call : Array.fromAsync(call)]);
  if (outcome?.status === "rejected" && outcome.reason instanceof kind) return outcome.reason;
  throw new Error("the call did not fail so", { cause: outcome });
}
