import { Code, type ConnectError } from "@connectrpc/connect";
import type { Msg } from "@nats-io/nats-core";
import { isInbox } from "../../../bus/credentials/inbox.ts";
import { noRoom, ROOM_PATIENCE_MS } from "../../handling/messages/assembly.ts";
import { notSent, unknownOutcome } from "../call/delivery.ts";
import { isSilent } from "../call/service-silence.ts";
import { errorFromFrame, fittingError } from "../frame/error-frame.ts";
import {
  bytesFromCredit,
  type Credit,
  type Frame,
  FrameFlag,
  FrameKind,
  parseCredit,
  parseFrame,
} from "../frame/frame.ts";
import { faultOf } from "../frame/frame-rules.ts";
import { readMetadata, type WireHeaders } from "../frame/headers.ts";
import { IncomingMessages } from "./assembly/incoming-messages.ts";
import { Beginning } from "./beginning.ts";
import type { ChannelOptions } from "./channel-options.ts";
import { ReceiveWindow } from "./credit.ts";
import { FrameSender, type MessageOptions } from "./frame-sender.ts";
import type { MuxCall } from "./mux.ts";
import { cancelEverywhere } from "./subjects.ts";

/*
 * One end of a call that is more than one message each way: both ends are the same object.
 *
 *   send, end ──▶ credit ──▶ FrameSender ──▶ the peer's inbox
 *   own inbox ──▶ receive ──▶ IncomingMessages ──▶ next ──▶ credit frames
 *   tick      ──▶ heartbeat · silence
 *
 * channel-1  Frames of one direction are counted; a gap means that the broker lost some, and ends the call.
 * channel-2  The server's end ends the call; the client's end only says that no more requests come.
 * channel-3  Messages that came before the end or an error are handed out before it; after a cancel or a local failure none are.
 * channel-4  Parts of the message that the reader waits for are credited as they come, others when their message is taken: so a message
 *     may be larger than the window, and memory holds one window and one message.
 * channel-5  The first frame from the server, and every heartbeat and credit, names the inbox of its sender: a peer that may only
 *     answer what it receives keeps its permission for as long as the call lasts. If nobody is there, nats-server says so.
 * channel-7  A frame that does not belong ends the call: what it says would be lost in silence, or taken for something else.
 * channel-6  Silence for `silenceMs` ends the call; a side that has been quiet for `heartbeatMs` breaks it.
 * channel-8  A client that lost a server has not canceled the call: it sends no cancel, which would reach a server that can still hear it.
 *     That one finds the client gone by its silence, and may go on with what must not be begun twice.
 * H10 Frames go to inboxes alone: a peer could name a subject that it may not publish to itself, such as that of a record.
 * channel-9  A handler starts when its request is whole: what fails before the client has sent the last part was not sent.
 */

type State = { kind: "open" } | { kind: "ended" } | { kind: "failed"; error: ConnectError };

export class Channel implements MuxCall {
  readonly inbox: string;
  readonly subject?: string;
  readonly beginning = new Beginning();
  readonly trailer = new Headers();
  readonly #options: ChannelOptions;
  readonly #window: ReceiveWindow;
  readonly #incoming: IncomingMessages;
  readonly #sender: FrameSender;
  #state: State = { kind: "open" };
  #received = 0;
  #heardAt = performance.now();

  constructor(options: ChannelOptions) {
    const { mux } = options;
    this.#options = options;
    if (options.subject) this.subject = options.subject;
    this.#window = new ReceiveWindow(mux.budget, options.window);
    if (options.granted) this.#window.adopt(options.granted);
    const room = options.role === "server" ? mux.requestRoom : mux.answerRoom;
    const holdsTaken = options.role === "server" && options.takesOneRequest === true;
    this.#incoming = new IncomingMessages(this.#window, (credit) => this.#grant(credit), {
      room,
      holdsTaken,
      sender: options.sender,
    });
    if (options.inbox) mux.replace(options.inbox, this);
    this.inbox = options.inbox ?? mux.register(this);
    this.#sender = new FrameSender(mux, options.peer, options.role === "server" ? this.inbox : undefined);
  }

  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  /** What this side grants by the message that opens the call. */
  openingCredit(): Credit {
    return this.#window.grant() ?? { messages: 0, bytes: 0 };
  }

  /** Tells the caller this side's address, and how much of its request it may send. */
  accept(): void {
    this.#grant(this.openingCredit());
  }

  /** Books what the peer has granted by its opening message. */
  addCredit(credit: Credit): void {
    this.#sender.window.add(credit);
  }

  /** The peer has said all that it has to say: its request came whole with the opening. */
  endIncoming(): void {
    this.#incoming.end();
  }

  /** Takes the first part of a request that came with its opening and goes on in frames. */
  pushOpening(part: Uint8Array): void {
    this.#incoming.pushOpening(part);
  }

  /**
   * Sends a message in as many parts as it needs, and resolves when the last has been handed to the connection; waits while
   * there is no credit. Fails when the call is over.
   */
  async send(message: Uint8Array, options: MessageOptions = {}): Promise<void> {
    await this.#sender.sendMessage(message, options, () => this.#assertOpen());
    if (options.isLast) this.#endedHere();
  }

  /** Sends the rest of a request whose first part went with the opening; resolves also when the call is over before. */
  async sendRest(rest: Uint8Array): Promise<void> {
    if (this.isOpen && this.#sender.window.messages === 0)
      this.#violated("granted no message for the rest of the request");
    try {
      await this.send(rest, { isLast: true, progress: this.#options.progress });
    } catch {
      // The call is over, and whoever reads its answer is told why: a server may also answer before it has read everything.
    }
  }

  /** Says that nothing more comes from this side. */
  async end(headers?: WireHeaders): Promise<void> {
    while (!this.#sender.hasPeer && this.isOpen) await this.#sender.window.changed();
    if (!this.isOpen) return;
    this.#sender.send(FrameKind.end, { headers });
    this.#endedHere();
  }

  /** Answers the call with an error. */
  sendError(error: ConnectError, header?: Headers, trailer?: Headers): void {
    if (!this.isOpen) return;
    this.#sender.send(FrameKind.error, fittingError(this.#options.mux.maxPayloadBytes, error, { header, trailer }));
    this.#close({ kind: "ended" });
  }

  /** Ends the call with a failure of this side, and tells the peer, wherever it is. */
  abort(error: ConnectError): void {
    if (!this.isOpen) return;
    const { mux, role, cancelSubject } = this.#options;
    if (role === "server") this.#sender.send(FrameKind.error, fittingError(mux.maxPayloadBytes, error));
    else if (!this.#sender.send(FrameKind.cancel) && cancelSubject) cancelEverywhere(mux, cancelSubject, this.inbox);
    this.fail(error);
  }

  /** channel-8 */
  #lose(error: ConnectError): void {
    if (this.#options.role === "client" && this.#sender.hasPeer) this.fail(error);
    else this.abort(error);
  }

  /** Ends the call here; the peer is not told. */
  fail(error: ConnectError): void {
    if (!this.isOpen) return;
    this.#incoming.drop(); // channel-3
    const isUnbegun = this.#options.progress?.stage === "unsent" && error.code !== Code.Internal; // who breaks the rules may have begun it all the same
    this.#refused(isUnbegun ? notSent(error.rawMessage, error.code, error) : error); // channel-9
  }

  /** The next message; undefined at the end; throws when the call failed. */
  next(): Promise<Uint8Array | undefined> {
    return this.#incoming.take();
  }

  receive(message: Msg): void {
    const frame = parseFrame(message.data);
    if (message.data.length === 0 && message.headers?.code === 503)
      this.#nobody(); // channel-5
    else if (!frame) this.#violated("sent something that is no frame");
    else if (frame.sequence !== this.#received >>> 0) {
      this.#lose(unknownOutcome("frames of this call were lost on the way")); // channel-1
    } else {
      this.#received += 1;
      this.#heardAt = performance.now();
      if (message.reply) this.#met(message.reply);
      const fault = faultOf(frame, this.#options.role === "client" ? "server" : "client") ?? this.#faultNow(frame);
      if (fault)
        this.#violated(fault); // channel-7
      else this.#handle(frame, message);
    }
  }

  tick(now: number, stalledMs: number): void {
    this.#heardAt += stalledMs;
    const { timings, onSilence } = this.#options;
    const { silenceMs, heartbeatMs } = timings;
    if (isSilent(now - this.#heardAt, timings)) onSilence?.();
    if (now - this.#heardAt >= silenceMs) {
      this.#lose(unknownOutcome(`the other end of the call has been silent for ${silenceMs} ms`)); // channel-6
    } else if (this.#incoming.waitedMs(now) > ROOM_PATIENCE_MS) this.abort(noRoom(ROOM_PATIENCE_MS));
    else if (now - this.#sender.sentAt >= heartbeatMs) this.beat();
  }

  /** Says that this side is alive, and where. */
  beat(): void {
    this.#sender.send(FrameKind.heartbeat, { reply: this.inbox });
  }

  #handle(frame: Frame, message: Msg): void {
    const { kind } = frame;
    const isAnswer = kind === FrameKind.data || kind === FrameKind.end || kind === FrameKind.error;
    if (isAnswer && this.#options.role === "client") this.beginning.readHeader(message);
    if (kind === FrameKind.data) this.#receiveData(frame, message);
    else if (kind === FrameKind.end) this.#endedThere(message);
    else if (kind === FrameKind.error) this.#refused(errorFromFrame(frame.body, message.headers, this.#received === 1));
    else if (kind === FrameKind.cancel) this.fail(unknownOutcome("the caller has canceled the call", Code.Canceled));
    else if (kind === FrameKind.credit) this.addCredit(parseCredit(frame.body));
  }

  /** What is wrong with a frame at this time of the call, or undefined. */
  #faultNow({ kind }: Frame): string | undefined {
    if (kind !== FrameKind.data && kind !== FrameKind.end) return undefined;
    if (this.#incoming.isEnded) return "sent a message or an end after its end";
    return kind === FrameKind.end && this.#incoming.isWithinMessage ? "ended in the middle of a message" : undefined;
  }

  #receiveData(frame: Frame, message: Msg): void {
    const { progress } = this.#options;
    if (progress) progress.stage = "sent"; // who answers has begun, whatever it has received
    const wasGranted = this.#incoming.push(frame.body, (frame.flags & FrameFlag.more) !== 0);
    if (!wasGranted) this.#violated("sent more than it was granted");
    else if ((frame.flags & FrameFlag.end) !== 0) this.#endedThere(message);
  }

  #grant(credit: Credit): void {
    if (this.isOpen) this.#sender.send(FrameKind.credit, { body: bytesFromCredit(credit), reply: this.inbox });
  }

  #assertOpen(): void {
    if (this.#state.kind === "failed") throw this.#state.error;
    if (this.#state.kind === "ended") throw notSent("the call is over", Code.Canceled);
  }

  #met(peer: string): void {
    if (!isInbox(peer)) throw new Error("a subject that is no inbox"); // H10
    if (this.#sender.hasPeer) return;
    this.#sender.meet(peer);
    this.beginning.show();
  }

  #endedThere(message: Msg): void {
    if (this.#options.role === "server") {
      this.#incoming.end();
      return;
    }
    readMetadata(message.headers, new Headers(), this.trailer);
    this.#close({ kind: "ended" }); // channel-2
  }

  #endedHere(): void {
    if (this.#options.role === "server") this.#close({ kind: "ended" }); // channel-2
  }

  #refused(error: ConnectError): void {
    this.#close({ kind: "failed", error });
    this.#options.onFailure?.(error);
  }

  #nobody(): void {
    if (this.#options.role === "client" && this.#received === 0) this.fail(notSent(`nobody serves ${this.subject}`));
    else this.fail(unknownOutcome("the other end of the call is gone"));
  }

  #violated(what: string): void {
    this.abort(unknownOutcome(`the other end of the call ${what}`, Code.Internal));
  }

  #close(state: State): void {
    this.#state = state;
    this.#options.mux.release(this.inbox);
    const error = state.kind === "failed" ? state.error : undefined;
    this.#incoming.end(error);
    this.#incoming.close();
    this.#sender.window.wake();
    this.beginning.end(error);
  }
}
