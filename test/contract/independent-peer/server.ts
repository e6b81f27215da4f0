// A server of the wire, in terms of protobuf's descriptors.

import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { Msg, NatsConnection, Service, Subscription } from "nats";
import type { MethodOf, Sequence } from "./client.ts";
import { type Credit, encodeFrame, Kind, parseCredit } from "./frames/frame.ts";
import { Link } from "./link.ts";
import { toBlock } from "./metadata.ts";
import { encodeError, PeerError, toPeerError } from "./peer-error.ts";
import { type RawContext, type RawHandler, ServerCall } from "./server-call.ts";

export type Handler<I extends DescMessage, O extends DescMessage> = (
  requests: AsyncIterable<MessageShape<I>>,
  context: RawContext,
) => Sequence<MessageInitShape<O>>;

interface Served {
  readonly method: DescMethod;
  readonly handler: RawHandler;
}

const cancelMemoryMs = 3_000;
const silenceMs = 3_000;
const firstWindow: Credit = { messages: 64, bytes: 65_536 };

export class PeerServer implements AsyncDisposable {
  readonly link: Link;
  readonly #name: string;
  readonly #patienceMs: number;
  readonly #service: Service;
  readonly #cancels: Subscription;
  readonly #calls = new Map<string, ServerCall>();
  readonly #canceled = new Map<string, NodeJS.Timeout>();

  private constructor(link: Link, name: string, service: Service, patienceMs: number) {
    this.link = link;
    this.#patienceMs = patienceMs;
    this.#name = name;
    this.#service = service;
    this.#cancels = link.connection.subscribe(`toolbus.rpc.${name}.cancel`, {
      callback: (failure, message) => {
        if (failure === null) this.#cancel(message.string());
      },
    });
  }

  /** As a micro service, so that `nats micro` shows it. */
  static async open(connection: NatsConnection, name: string, patienceMs = 10_000): Promise<PeerServer> {
    const service = await connection.services.add({ name, version: "1.0.0", queue: name });
    return new PeerServer(new Link(connection), name, service, patienceMs);
  }

  serve<I extends DescMessage, O extends DescMessage>(method: MethodOf<I, O>, handler: Handler<I, O>): void {
    const raw: RawHandler = (requests, context) =>
      encodeAll(method.output, handler(decodeAll(method.input, requests), context));
    const fullName = `${method.parent.typeName}.${method.name}`;
    this.#service.addEndpoint(fullName.replaceAll(".", "_"), {
      subject: `toolbus.rpc.${this.#name}.${fullName}`,
      handler: (failure, message) => {
        if (failure === null) this.#open(message, { method, handler: raw });
      },
    });
  }

  /** Resolves when nats-server knows the subscriptions. */
  async ready(): Promise<void> {
    await this.link.connection.flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.stop();
    const until = Date.now() + this.#patienceMs;
    while (this.#calls.size > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
    const stopping = new PeerError("unavailable", "the instance stops");
    for (const call of [...this.#calls.values()]) call.refuse(stopping);
    this.#cancels.unsubscribe();
    for (const timer of this.#canceled.values()) clearTimeout(timer);
  }

  #open(opening: Msg, { method, handler }: Served): void {
    const { reply: id } = opening;
    if (!id || this.#calls.has(id) || this.#canceled.has(id)) return;
    const refusal = refusalOf(opening, method) ?? unreadable(opening, method);
    const onDone = () => this.#calls.delete(id);
    const setup = { shape: method.methodKind, window: firstWindow, handler, onDone };
    if (refusal) this.#refuse(id, refusal);
    else this.#calls.set(id, new ServerCall(this.link, opening, setup));
  }

  #refuse(inbox: string, error: PeerError): void {
    const frame = { kind: Kind.error, sequence: 0, more: false, end: false, body: encodeError(error) };
    const headers = toBlock({ own: { "Rpc-Delivery": "NOT_SENT" } });
    this.link.publish(inbox, encodeFrame(frame), { headers });
  }

  #cancel(id: string): void {
    const call = this.#calls.get(id);
    const forget = () => this.#canceled.delete(id);
    if (call) call.cancel();
    else this.#canceled.set(id, setTimeout(forget, cancelMemoryMs));
  }
}

const isNumber = (text: string) => /^\d{1,15}$/.test(text);
const ownHeaders: readonly [string, (text: string) => boolean][] = [
  ["Rpc-Sent", (text) => /^[\w-]{1,32} \d{1,15}$/.test(text)],
  ["Rpc-Timeout", isNumber],
  ["Rpc-Credit", (text) => parseCredit(text) !== undefined],
  ["Rpc-More", (text) => text === "1"],
];

function refusalOf({ headers, data }: Msg, { methodKind }: DescMethod): PeerError | undefined {
  const invalid = (text: string) => new PeerError("invalid_argument", text);
  for (const [key, isRight] of ownHeaders) {
    const values = headers?.values(key) ?? [];
    if (values.length > 1 || !values.every(isRight)) return invalid(`${key} is wrong`);
  }
  const limit = Math.min(Number(headers?.get("Rpc-Timeout") || silenceMs), silenceMs);
  if (headers?.has("Rpc-Sent") && !headers.has("Rpc-More") && ageOf(headers.get("Rpc-Sent")) > limit)
    return new PeerError("deadline_exceeded", "came too late");
  if (methodKind === "unary" || methodKind === "server_streaming") return undefined;
  if (headers?.has("Rpc-More")) return invalid("Rpc-More does not belong here");
  return data.length > 0 ? invalid("a payload does not belong here") : undefined;
}

const leastByClock = new Map<string, number>();

/** How long an opening was on its way: the quickest one by the same clock took no time. */
function ageOf(sent: string): number {
  const [clock = "", ms] = sent.split(" ");
  const distance = performance.now() - Number(ms);
  const least = Math.min(distance, leastByClock.get(clock) ?? distance);
  leastByClock.set(clock, least);
  return distance - least;
}

/** A request that is whole in its opening is read before its handler is started. */
function unreadable({ headers, data }: Msg, { methodKind, input }: DescMethod): PeerError | undefined {
  if ((methodKind !== "unary" && methodKind !== "server_streaming") || headers?.has("Rpc-More")) return undefined;
  try {
    decoded(input, data);
    return undefined;
  } catch (error) {
    return toPeerError(error);
  }
}

async function* encodeAll<O extends DescMessage>(output: O, answers: Sequence<MessageInitShape<O>>) {
  for await (const answer of answers) yield toBinary(output, create(output, answer));
}

async function* decodeAll<I extends DescMessage>(input: I, requests: AsyncIterable<Uint8Array>) {
  for await (const request of requests) yield decoded(input, request);
}

function decoded<I extends DescMessage>(input: I, request: Uint8Array): MessageShape<I> {
  try {
    return fromBinary(input, request);
  } catch {
    throw new PeerError("invalid_argument", `the request is no ${input.typeName}`);
  }
}
