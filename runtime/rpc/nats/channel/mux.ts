import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { ClosedConnectionError, DrainingConnectionError, PermissionViolationError } from "@nats-io/nats-core";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { type Link, linkOf } from "#runtime/bus/link/link.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { CallSignal } from "../../handling/call-signal.ts";
import { AssemblyRoom } from "../../handling/messages/assembly.ts";
import { ByteBudget } from "../../handling/messages/byte-budget.ts";
import { notSent, unknownOutcome } from "../call/delivery.ts";
import { ServiceSilence } from "../call/service-silence.ts";
import { CONNECTION_BUDGET_BYTES, OPENINGS_BUDGET_BYTES } from "./credit.ts";

/*
 * One inbox a connection, for all calls of all transports and servers on it.
 *
 *   CallMux ── one subscription `<inbox>.*` ──▶ token ──▶ MuxCall.receive
 *           ── one timer                     ──────────▶ MuxCall.tick      (heartbeats, silence, notices)
 *           ── the connection's link, status ──────────▶ MuxCall.fail      (disconnect, close, refused publish)
 *
 * mux-1  A call costs no subscription and no timer of its own.
 * mux-2  What was under way when the connection broke has failed, with an unknown outcome: frames may be lost.
 * mux-3  Nothing is published while the connection is down, since the client library forgets it: `ready` waits.
 * mux-4  The silence of the peer counts only while this process itself was awake: after a stall the counting starts again.
 * mux-5  What is read after a stall may have waited for all of it, until the server has answered a ping sent afterwards.
 * mux-6  What a call throws at a message, whose headers may be anything, ends that call: it would end all reading of the connection.
 * mux-7  Nobody can guess the inbox of a call: a peer says where frames go to it, and must not know the inboxes of other calls.
 */

/** One end of a call that is under way. */
export interface MuxCall {
  /** Where its request went, to find the call that a refused publish belongs to. */
  readonly subject?: string;
  receive(message: Msg): void;
  tick(now: number, stalledMs: number): void;
  fail(error: ConnectError): void;
  /** Likewise, and tells the other end. */
  abort?(error: ConnectError): void;
}

interface PublishOptions {
  readonly headers?: MsgHdrs | undefined;
  readonly reply?: string | undefined;
}

const TICK_MS = 50;
const STALL_MS = 500;
const muxes = new WeakMap<NatsConnection, CallMux>();

export class CallMux {
  readonly connection: NatsConnection;
  /** What may be sent to this connection. */
  readonly budget = new ByteBudget(CONNECTION_BUDGET_BYTES);
  /** For large requests, and for large answers: a call that has the one may wait for the other. */
  readonly requestRoom = new AssemblyRoom();
  readonly answerRoom = new AssemblyRoom();
  /** What this connection has sent in openings, of calls of which nothing has been heard. */
  readonly openings = new ByteBudget(OPENINGS_BUDGET_BYTES);
  readonly #prefix: string;
  readonly #calls = new TransientMap<MuxCall>();
  readonly #link: Link;
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = 0;
  #stalledMs = 0;
  readonly #silences = new Map<string, ServiceSilence>();

  /** The mux of a connection, which lives as long as the connection does. */
  static of(connection: NatsConnection): CallMux {
    return getOrInsertComputed(muxes, connection, () => new CallMux(connection));
  }

  private constructor(connection: NatsConnection) {
    this.connection = connection;
    this.#prefix = `${openInbox(connection)}.`;
    connection.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (error) this.#failAll(() => notSent(`the inbox of this connection was refused: ${error.message}`));
        else this.#receive(message.subject.slice(this.#prefix.length), message);
      },
    });
    this.#link = linkOf(connection);
    const broke = "the connection to NATS broke while the call was under way";
    this.#link.onLoss(() => this.#failAll(() => unknownOutcome(broke))); // mux-2
    void this.#followRefusals();
  }

  /** mux-6 */
  #receive(token: string, message: Msg): void {
    try {
      this.#calls.get(token)?.receive(message);
    } catch (error) {
      const text = `the other end of the call sent what cannot be read: ${messageFromUnknown(error)}`;
      const isTold = error instanceof ConnectError;
      this.#calls.get(token)?.abort?.(isTold ? error : unknownOutcome(text, Code.Internal, error));
    }
  }

  /** The largest message, headers included, that the server takes. */
  get maxPayloadBytes(): number {
    return this.connection.info?.max_payload ?? 1_048_576;
  }

  /** Publishes if the connection still takes it; whoever waits for an answer is told by the connection's closing. */
  publish(subject: string, bytes: Uint8Array, options: PublishOptions = {}): boolean {
    if (this.connection.isClosed()) return false;
    const { headers, reply } = options;
    try {
      this.connection.publish(subject, bytes, { ...(headers && { headers }), ...(reply && { reply }) });
      return true;
    } catch (error) {
      if (error instanceof ClosedConnectionError || error instanceof DrainingConnectionError) return false;
      throw error;
    }
  }

  silenceOf(service: string): ServiceSilence {
    return getOrInsertComputed(this.#silences, service, () => new ServiceSilence());
  }

  /** mux-5 So old may be what is read at this moment; only while there are calls is that known. */
  get stalledMs(): number {
    const lateMs = this.#timer ? performance.now() - this.#tickedAt - TICK_MS : 0;
    return lateMs > STALL_MS ? lateMs : this.#stalledMs;
  }

  /** Gives a call its address. */
  register(call: MuxCall): string {
    const token = randomUUID(); // mux-7
    this.#calls.set(token, call);
    this.#wake();
    return this.#prefix + token;
  }

  /** Lets another object go on with a call. */
  replace(inbox: string, call: MuxCall): void {
    this.#calls.set(inbox.slice(this.#prefix.length), call);
  }

  release(inbox: string): void {
    this.#calls.delete(inbox.slice(this.#prefix.length));
  }

  /** Resolves when the connection is up (mux-3), at once when it is; fails NOT_SENT when it is closed or stays down. */
  ready(abort: CallSignal, patienceMs: number): Promise<void> | undefined {
    if (this.connection.isClosed()) throw closed();
    return this.#link.isUp ? undefined : this.#restored(abort, patienceMs);
  }

  async #restored(abort: CallSignal, patienceMs: number): Promise<void> {
    const gaveUp = Promise.withResolvers<never>();
    abort.whenAborted((reason) => gaveUp.reject(ConnectError.from(reason, Code.Canceled)));
    const restored = this.#link.whenUp().catch((error) => Promise.reject(closed(error)));
    if (!(await comesWithin(patienceMs, Promise.race([restored, gaveUp.promise]))))
      throw notSent("NATS cannot be reached");
  }

  async #followRefusals(): Promise<void> {
    for await (const status of this.connection.status()) if (status.type === "error") this.#refused(status.error);
  }

  #refused(error: Error): void {
    if (!(error instanceof PermissionViolationError) || error.operation !== "publish") return;
    for (const call of this.#calls.values()) {
      if (call.subject === error.subject)
        call.fail(notSent(`this connection may not publish to ${error.subject}`, Code.PermissionDenied));
    }
  }

  #failAll(createError: () => ConnectError): void {
    for (const call of this.#calls.values()) call.fail(createError());
  }

  #wake(): void {
    if (this.#timer) return;
    this.#tickedAt = performance.now();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  #stalled(lateMs: number): void {
    this.#stalledMs = Math.max(this.#stalledMs, lateMs);
    const caughtUp = () => {
      this.#stalledMs = 0;
    };
    this.connection.flush().then(caughtUp, caughtUp); // fails with the connection, and what it held is gone with it
  }

  #tick(): void {
    const now = performance.now();
    const lateMs = now - this.#tickedAt - TICK_MS;
    if (lateMs > STALL_MS) this.#stalled(lateMs);
    this.#tickedAt = now;
    if (this.#calls.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    for (const call of this.#calls.values()) call.tick(now, lateMs > STALL_MS ? lateMs : 0); // mux-4
  }
}

function closed(cause?: unknown): ConnectError {
  return notSent("the connection to NATS is closed", Code.Unavailable, cause);
}
