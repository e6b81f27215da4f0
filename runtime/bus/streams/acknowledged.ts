import { type ApiError, JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import { TransientMap } from "../../collections/maps/transient-map.ts";
import { openInbox } from "../credentials/inbox.ts";
import type { Link } from "../link/link.ts";
import { listen } from "../link/listen.ts";

/*
 * Publishes to streams: one subscription and one timer a connection for all acknowledgements. The client's own publish makes a
 * timer, several promises and their listeners for each, which costs more than the message.
 *
 *   publish ──▶ stream ──▶ acknowledgement ──▶ its sequence, or the server's refusal
 *                     link lost, or silence ──▶ an outcome that is unknown
 */

export interface AcknowledgedPublish {
  subject: string;
  payload: Uint8Array | string;
  headers: MsgHdrs;
  timeoutMs: number;
}

interface Waiting {
  readonly token: string;
  readonly subject: string;
  readonly givenUpAt: number;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: unknown) => void;
}

const CHECK_MS = 50;
const publishers = new WeakMap<NatsConnection, AcknowledgedPublisher>();

/** Gives the sequence under which the message stands. Rejects at once when the server is lost. */
export function publishAcknowledged(
  bus: { connection: NatsConnection; link: Link },
  message: AcknowledgedPublish,
): Promise<number> {
  const open = (connection: NatsConnection) => new AcknowledgedPublisher(connection, bus.link);
  return getOrInsertComputed(publishers, bus.connection, open).publish(message);
}

/** Lives as long as its connection. */
class AcknowledgedPublisher {
  readonly #connection: NatsConnection;
  readonly #link: Link;
  readonly #prefix: string;
  readonly #waiting = new TransientMap<Waiting>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(connection: NatsConnection, link: Link) {
    this.#connection = connection;
    this.#link = link;
    this.#prefix = `${openInbox(connection)}.`;
    listen({ connection }, `${this.#prefix}*`, (message) => this.#acknowledged(message));
    link.onLoss(() =>
      this.#giveUp(
        () => true,
        () => link.down.reason,
      ),
    );
  }

  publish({ subject, payload, headers, timeoutMs }: AcknowledgedPublish): Promise<number> {
    if (!this.#link.isUp) return Promise.reject(this.#link.down.reason);
    this.#count += 1;
    const token = this.#count.toString(36);
    return new Promise((resolve, reject) => {
      this.#connection.publish(subject, payload, { reply: this.#prefix + token, headers });
      this.#waiting.set(token, { token, subject, givenUpAt: performance.now() + timeoutMs, resolve, reject });
      this.#timer ??= setInterval(() => this.#check(), CHECK_MS);
    });
  }

  #acknowledged(message: Msg): void {
    const token = message.subject.slice(this.#prefix.length);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return; // given up
    this.#waiting.delete(token);
    try {
      waiting.resolve(sequenceFrom(message, waiting.subject));
    } catch (error) {
      waiting.reject(error);
    }
  }

  #check(): void {
    const now = performance.now();
    this.#giveUp(
      ({ givenUpAt }) => givenUpAt <= now,
      () => new errors.TimeoutError(),
    );
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #giveUp(isLost: (waiting: Waiting) => boolean, cause: () => unknown): void {
    for (const waiting of this.#waiting.values()) {
      if (!isLost(waiting)) continue;
      this.#waiting.delete(waiting.token);
      waiting.reject(cause());
    }
  }
}

function sequenceFrom(message: Msg, subject: string): number {
  if (message.data.length === 0 && message.headers?.code === 503) throw new errors.NoRespondersError(subject);
  const { seq, stream, error } = message.json<{ seq: number; stream?: string; error?: ApiError }>();
  if (error) throw new JetStreamApiError(error);
  if (!stream) throw new JetStreamError("invalid ack response");
  return seq;
}
