import { Code, type ConnectError } from "@connectrpc/connect";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { notSent } from "../call/delivery.ts";
import type { Channel } from "../channel/channel.ts";
import type { Credit } from "../frame/frame.ts";
import { type ClientContext, type ClientRequest, openChannel, openChannelCall } from "./client-call.ts";

/*
 * A call of one request that nobody starts before its caller has heard of somebody who lives.
 *
 *   opening without the request ──▶ an instance that is silent      after a while another opening goes out
 *   opening without the request ──▶ an instance that lives ──▶ credit ──▶ the request goes to it, the other openings are canceled
 *
 * confirmed-call-1  A handler starts when its request is whole, and only one instance gets it: so any number of openings starts one call.
 * confirmed-call-2  When nobody shows himself, nothing was started, and the error says so.
 */

/** The channel of the instance that took the request; fails NOT_SENT when none does before a silent one counts as dead. */
export async function openConfirmed(
  context: ClientContext,
  request: ClientRequest,
  { body, window }: { body: Uint8Array; window: Credit },
): Promise<Channel> {
  const { heartbeatMs, silenceMs } = context.timings;
  const attempts = new Attempts(context, request, window);
  const startedAt = performance.now();
  try {
    do attempts.open();
    while (!(await comesWithin(heartbeatMs / 4, attempts.taken)) && performance.now() - startedAt < silenceMs);
    const channel = await attempts.taker();
    if (attempts.count === 1) context.silence?.tookAtOnce();
    else context.silence?.notice();
    void channel.sendRest(body);
    return channel;
  } finally {
    attempts.leaveOthers();
  }
}

class Attempts {
  readonly #context: ClientContext;
  readonly #request: ClientRequest;
  readonly #window: Credit;
  readonly #channels: Channel[] = [];
  readonly #taken = Promise.withResolvers<Channel>();
  #taker: Channel | undefined;
  #failed = 0;

  constructor(context: ClientContext, request: ClientRequest, window: Credit) {
    this.#context = context;
    this.#request = request;
    this.#window = window;
    this.#taken.promise.catch(() => {}); // told to whoever asks for the taker
  }

  /** Settles with the first instance that shows itself, or when all openings have failed. */
  get taken(): Promise<Channel> {
    return this.#taken.promise;
  }

  get count(): number {
    return this.#channels.length;
  }

  open(): void {
    const channel = openChannel(this.#context, this.#request, { window: this.#window });
    this.#channels.push(channel);
    openChannelCall(this.#context, this.#request, channel, { body: NO_BODY, isConfirmed: true }).then(
      () => this.#take(channel),
      (error) => this.#fail(channel, error),
    );
  }

  taker(): Promise<Channel> {
    const { silenceMs } = this.#context.timings;
    this.#taken.reject(
      notSent(`no instance that serves ${this.#request.subject} took the call within ${silenceMs} ms`),
    ); // confirmed-call-2
    return this.#taken.promise;
  }

  leaveOthers(): void {
    for (const channel of this.#channels) {
      if (channel !== this.#taker) channel.abort(notSent("another instance took the call", Code.Canceled));
    }
  }

  #take(channel: Channel): void {
    this.#taker ??= channel;
    this.#taken.resolve(channel);
  }

  #fail(channel: Channel, error: unknown): void {
    if (channel.isOpen) channel.fail(error as ConnectError);
    this.#failed += 1;
    if (this.#failed === this.#channels.length) this.#taken.reject(error);
  }
}

const NO_BODY = new Uint8Array(0);
