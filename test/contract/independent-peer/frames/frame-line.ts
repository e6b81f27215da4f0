// The frames of one side of one call: numbers, heartbeats, silence. docs/connect-over-nats/README.md, "Frames" and "Time".

import type { Msg, MsgHdrs } from "nats";
import { isNobodyThere, type Link, type Mail } from "../link.ts";
import { PeerError } from "../peer-error.ts";
import { decodeFrame, encodeFrame, type Frame, faultOf, Kind, type ReceivedFrame } from "./frame.ts";

const tickMs = 100;
const heartbeatTicks = 1_000 / tickMs;
const silenceTicks = 3_000 / tickMs;

export interface LineEnds {
  onFrame(frame: Frame, headers: MsgHdrs | undefined): void;
  /** The call cannot go on. */
  onBroken(error: PeerError): void;
}

export interface Outgoing {
  readonly kind: number;
  readonly body?: Uint8Array;
  readonly more?: boolean;
  readonly end?: boolean;
  readonly headers?: MsgHdrs | undefined;
}

const lost = (text: string) => new PeerError("unavailable", text, { delivery: "UNKNOWN" });

export class FrameLine {
  /** Number of the next frame to send; tests of lost frames skip one. */
  nextSequence = 0;
  peerInbox: string | undefined;
  readonly #link: Link;
  readonly #mail: Mail;
  readonly #ends: LineEnds;
  readonly #peer: "client" | "server";
  #timer: NodeJS.Timeout | undefined;
  #expected = 0;
  #hasHeard = false;
  #isClosed = false;
  // Ticks are counted, not clocks read: time in which this process was stopped makes no ticks.
  #ticksSinceSent = 0;
  #ticksSinceHeard = 0;

  /** With the client's inbox at the server, which knows it from the opening. */
  constructor(link: Link, ends: LineEnds, peerInbox?: string) {
    this.#peer = peerInbox === undefined ? "server" : "client";
    this.#link = link;
    this.#ends = ends;
    this.peerInbox = peerInbox;
    const onAway = () => this.#break(lost("the connection to NATS broke"));
    this.#mail = link.receive((message) => this.#receive(message), onAway);
  }

  /** From here on silence counts, and there are heartbeats. */
  begin(): void {
    this.#timer ??= setInterval(() => this.#tick(), tickMs);
  }

  get inbox(): string {
    return this.#mail.inbox;
  }

  /** How many frames have come. */
  get received(): number {
    return this.#expected;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  send({ kind, body = new Uint8Array(), more = false, end = false, headers }: Outgoing): void {
    if (this.#isClosed || this.peerInbox === undefined) return;
    const sequence = this.nextSequence++;
    const isLast = end || kind === Kind.end || kind === Kind.error;
    const saysInbox = kind === Kind.heartbeat || (sequence === 0 && !isLast);
    this.#ticksSinceSent = 0;
    const payload = encodeFrame({ kind, sequence, more, end, body });
    this.#link.publish(this.peerInbox, payload, { reply: saysInbox ? this.inbox : undefined, headers });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#mail.close();
  }

  #receive(message: Msg): void {
    if (this.#isClosed) return;
    const frame = decodeFrame(message.data);
    if (isNobodyThere(message)) this.#nobodyThere();
    else if (frame === undefined) {
      this.#break(new PeerError("internal", "what came is no frame", { delivery: "UNKNOWN" }));
    } else if (frame.sequence === this.#expected) this.#accept(frame, message);
    else this.#break(lost("frames were lost"));
  }

  #accept(frame: ReceivedFrame, message: Msg): void {
    this.#expected++;
    this.#hasHeard = true;
    this.#ticksSinceHeard = 0;
    if (message.reply) this.peerInbox ??= message.reply;
    const fault = faultOf(frame, this.#peer);
    if (fault) this.#break(new PeerError("internal", `the ${this.#peer} sent ${fault}`, { delivery: "UNKNOWN" }));
    else this.#ends.onFrame(frame, message.headers);
  }

  #nobodyThere(): void {
    const delivery = this.#hasHeard || this.nextSequence > 0 ? "UNKNOWN" : "NOT_SENT";
    this.#break(new PeerError("unavailable", "nobody listens at the other side", { delivery }));
  }

  #tick(): void {
    this.#ticksSinceSent++;
    this.#ticksSinceHeard++;
    if (this.#ticksSinceHeard >= silenceTicks) this.#break(lost("nothing was heard for 3 s"));
    else if (this.#ticksSinceSent >= heartbeatTicks) this.send({ kind: Kind.heartbeat });
  }

  #break(error: PeerError): void {
    if (!this.#isClosed) this.#ends.onBroken(error);
  }
}
