// A client of the wire, in terms of protobuf's descriptors.

import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { NatsConnection } from "nats";
import { type CallOptions, ClientCall, type Target } from "./client-call.ts";
import { Link } from "./link.ts";
import { PeerError } from "./peer-error.ts";

export type MethodOf<I extends DescMessage, O extends DescMessage> = DescMethod & {
  readonly input: I;
  readonly output: O;
};

export type Sequence<T> = Iterable<T> | AsyncIterable<T>;

export interface PeerCall<O> extends AsyncIterable<O> {
  readonly raw: ClientCall;
}

export interface PeerAnswer<O> {
  readonly message: O;
  readonly header: Headers;
  readonly trailer: Headers;
}

const isWhole = (method: DescMethod) => method.methodKind === "unary" || method.methodKind === "server_streaming";

export class PeerClient {
  readonly link: Link;
  readonly #service: string;

  constructor(connection: NatsConnection, service: string) {
    this.link = new Link(connection);
    this.#service = service;
  }

  /** Any shape: requests in, answers out. */
  call<I extends DescMessage, O extends DescMessage>(
    method: MethodOf<I, O>,
    requests: Sequence<MessageInitShape<I>>,
    options: CallOptions = {},
  ): PeerCall<MessageShape<O>> {
    const target: Target = {
      service: this.#service,
      method: `${method.parent.typeName}.${method.name}`,
      isRequestWhole: isWhole(method),
    };
    const raw = new ClientCall(this.link, target, options);
    void raw.start(encodeAll(method.input, requests));
    return { raw, [Symbol.asyncIterator]: () => decodeAll(method.output, raw) };
  }

  /** For the shapes with one answer. */
  async ask<I extends DescMessage, O extends DescMessage>(
    method: MethodOf<I, O>,
    requests: Sequence<MessageInitShape<I>>,
    options: CallOptions = {},
  ): Promise<PeerAnswer<MessageShape<O>>> {
    const call = this.call(method, requests, options);
    const messages = await Array.fromAsync(call);
    const message = messages[0];
    if (message === undefined || messages.length > 1) throw unreadable("not one answer");
    return { message, header: call.raw.header, trailer: call.raw.trailer };
  }
}

async function* encodeAll<I extends DescMessage>(input: I, requests: Sequence<MessageInitShape<I>>) {
  for await (const request of requests) yield toBinary(input, create(input, request));
}

async function* decodeAll<O extends DescMessage>(output: O, answers: AsyncIterable<Uint8Array>) {
  for await (const answer of answers) yield decoded(output, answer);
}

function decoded<O extends DescMessage>(output: O, answer: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(output, answer);
  } catch {
    throw unreadable(`the answer is no ${output.typeName}`);
  }
}

function unreadable(text: string): PeerError {
  return new PeerError("internal", text, { delivery: "UNKNOWN" });
}
