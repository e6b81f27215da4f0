// One connection to NATS, and what a call has to know of it.

import { createInbox, Events, type Msg, type MsgHdrs, type NatsConnection } from "nats";

export interface Posted {
  readonly reply?: string | undefined;
  readonly headers?: MsgHdrs | undefined;
}

export interface Mail {
  readonly inbox: string;
  /** Idempotent. */
  close(): void;
}

export class Link {
  readonly connection: NatsConnection;
  #isMute = false;
  #isAway = false;
  readonly #onAway = new Set<() => void>();
  readonly #onBack = new Set<() => void>();

  constructor(connection: NatsConnection) {
    this.connection = connection;
    void this.#watch();
  }

  get maxPayload(): number {
    return this.connection.info?.max_payload ?? 1_048_576;
  }

  /** Resolves when the connection stands, with false if it does not within the time. */
  async isThere(timeoutMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    this.#onBack.add(resolve);
    if (this.#isAway) await promise;
    this.#onBack.delete(resolve);
    clearTimeout(timer);
    return !this.#isAway;
  }

  /** From here on this side says nothing and hears nothing, while its subscriptions stand: a process that hangs. */
  fallSilent(): void {
    this.#isMute = true;
  }

  publish(subject: string, payload: Uint8Array, { reply, headers }: Posted = {}): void {
    // The client library would keep what is published while the connection is away, and send it too late.
    if (this.#isMute || this.#isAway || this.connection.isClosed()) return;
    this.connection.publish(subject, payload, { ...(reply && { reply }), ...(headers && { headers }) });
  }

  /** An inbox of its own for one side of one call. */
  receive(onMessage: (message: Msg) => void, onAway: () => void): Mail {
    const inbox = createInbox();
    const subscription = this.connection.subscribe(inbox, {
      callback: (failure, message) => {
        if (failure === null && !this.#isMute) onMessage(message);
      },
    });
    this.#onAway.add(onAway);
    const close = () => {
      this.#onAway.delete(onAway);
      if (!subscription.isClosed()) subscription.unsubscribe();
    };
    return { inbox, close };
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.connection.status()) {
      if (type !== Events.Reconnect && type !== Events.Disconnect) continue;
      this.#isAway = type === Events.Disconnect;
      for (const told of [...(this.#isAway ? this.#onAway : this.#onBack)]) told();
    }
  }
}

/** How nats-server says that nobody listens to the subject of a message. */
export function isNobodyThere(message: Msg): boolean {
  return message.data.length === 0 && message.headers?.code === 503;
}
