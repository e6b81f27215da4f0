// One call, as the runner has it: it numbers what it sends, holds the peer to the rules that hold for every frame, and keeps what came.

import { createInbox, type Msg, type NatsConnection, headers as newHeaders, type Subscription } from "nats";

export const kinds = { data: 1, end: 2, error: 3, cancel: 4, credit: 5, heartbeat: 6 } as const;
export const flagBits = { more: 1, end: 2 } as const;

const headBytes = 6;
const heartbeatMs = 900;

export interface Arrival {
  readonly at: number;
  readonly kind: number;
  readonly flags: number;
  readonly body: Uint8Array;
  readonly headers: ReadonlyMap<string, readonly string[]> | undefined;
  readonly inbox: string | undefined;
  readonly status: number | undefined;
}

export interface Outgoing {
  readonly kind: number;
  readonly flags: number;
  readonly body: Uint8Array;
  readonly headers?: readonly [string, string][];
  readonly reply?: boolean | undefined;
}

interface Credit {
  messages: number;
  bytes: number;
}

export class WireCall {
  readonly inbox = createInbox();
  readonly arrivals: Arrival[] = [];
  /** What the peer did that no peer may do. */
  readonly faults: string[] = [];
  /** What the peer may still send, and what we may. */
  readonly granted: Credit = { messages: 0, bytes: 0 };
  readonly credit: Credit = { messages: 0, bytes: 0 };
  peer: string | undefined;
  isMute = false;
  readonly #isServer: boolean;
  readonly #connection: NatsConnection;
  readonly #subscription: Subscription;
  readonly #heartbeat: NodeJS.Timeout;
  #sent = 0;
  #sentAt = 0;
  #expected = 0;
  #isWithin = false;

  /** As a server, with the inbox of a client that has opened the call; else as a client, who learns its server's. */
  constructor(connection: NatsConnection, client?: string) {
    this.peer = client;
    this.#isServer = client !== undefined;
    this.#connection = connection;
    this.#subscription = connection.subscribe(this.inbox, {
      callback: (error, message) => {
        if (!error) this.#arrived(message);
      },
    });
    this.#heartbeat = setInterval(() => this.#beat(), 100);
  }

  /** Sends a frame, with our inbox as its reply where the rules want it. */
  send({ kind, flags, body, headers, reply }: Outgoing): void {
    const isOnly = (flags & flagBits.end) !== 0 || kind === kinds.end || kind === kinds.error;
    const saysInbox = reply ?? (kind === kinds.heartbeat || (this.#sent === 0 && !isOnly));
    const head = Buffer.alloc(headBytes);
    head.writeUInt8(kind, 0);
    head.writeUInt8(flags, 1);
    head.writeUInt32BE(this.#sent, 2);
    this.#sent += 1;
    this.publish(Buffer.concat([head, body]), { headers, inbox: saysInbox ? this.inbox : undefined });
    const credit = kind === kinds.credit && body.length === 8 ? creditFrom(body) : undefined;
    if (credit) this.grant(credit);
  }

  /** Sends bytes that may be no frame. */
  publish(
    bytes: Uint8Array,
    more: { headers?: readonly [string, string][] | undefined; inbox?: string | undefined } = {},
  ): void {
    if (this.peer === undefined) throw new Error("the peer has not said its inbox, so nothing can be sent to it");
    this.#sentAt = performance.now();
    const options = {
      ...(more.inbox && { reply: more.inbox }),
      ...(more.headers && { headers: blockOf(more.headers) }),
    };
    this.#connection.publish(this.peer, bytes, options);
  }

  skip(numbers: number): void {
    this.#sent += numbers;
  }

  grant({ messages, bytes }: Credit): void {
    this.granted.messages += messages;
    this.granted.bytes += bytes;
  }

  leave(): void {
    this.isMute = true;
    clearInterval(this.#heartbeat);
    this.#subscription.unsubscribe();
  }

  #beat(): void {
    if (this.isMute || this.peer === undefined || performance.now() - this.#sentAt < heartbeatMs) return;
    if (this.#isServer && this.#sent === 0) return; // a server's begin with its first frame
    this.send({ kind: kinds.heartbeat, flags: 0, body: Buffer.alloc(0) });
  }

  #arrived(message: Msg): void {
    const status = message.headers?.code || undefined;
    const { data } = message;
    if (status === undefined) this.#check(data, Boolean(message.reply));
    if (message.reply) this.peer ??= message.reply;
    const body = data.subarray(headBytes);
    if (data[0] === kinds.credit && body.length === 8) add(this.credit, creditFrom(body));
    const headers = message.headers && new Map([...message.headers].map(([key, values]) => [key, values]));
    const inbox = message.reply || undefined;
    const [kind = 0, flags = 0] = data;
    this.arrivals.push({ at: performance.now(), kind, flags, body, headers, inbox, status });
  }

  #check(data: Uint8Array, saysInbox: boolean): void {
    const [kind = 0, flags = 0] = data;
    if (data.length < headBytes || kind < kinds.data || kind > kinds.heartbeat) {
      this.faults.push(`what came is no frame: ${Buffer.from(data.subarray(0, 16)).toString("hex")}`);
      return;
    }
    const number = new DataView(data.buffer, data.byteOffset).getUint32(2);
    if (number !== this.#expected) this.faults.push(`frame ${number} came where ${this.#expected} was to come`);
    this.#expected += 1;
    if (flags > 2 || (flags !== 0 && kind !== kinds.data)) this.faults.push(`frame ${number} has flags ${flags}`);
    const isOnly = kind === kinds.end || kind === kinds.error || (flags & flagBits.end) !== 0;
    const mustSayInbox = kind === kinds.heartbeat || (number === 0 && !this.#isServer && !isOnly);
    if (mustSayInbox && !saysInbox) this.faults.push(`frame ${number} carries no inbox`);
    if (kind === kinds.heartbeat && data.length > headBytes) this.faults.push("a heartbeat has a body");
    if (kind === kinds.data) this.#pay(data.length - headBytes, (flags & flagBits.more) !== 0);
  }

  #pay(bytes: number, hasMore: boolean): void {
    this.granted.bytes -= bytes;
    if (!this.#isWithin) this.granted.messages -= 1;
    this.#isWithin = hasMore;
    if (this.granted.bytes < 0 || this.granted.messages < 0) this.faults.push("data came that was not granted");
  }
}

function creditFrom(body: Uint8Array): Credit {
  const view = new DataView(body.buffer, body.byteOffset, 8);
  return { messages: view.getUint32(0), bytes: view.getUint32(4) };
}

export function add(to: Credit, { messages, bytes }: Credit): void {
  to.messages += messages;
  to.bytes += bytes;
}

export function blockOf(lines: readonly [string, string][]) {
  const block = newHeaders();
  for (const [key, value] of lines) block.append(key, value);
  return block;
}
