// One call, as its server sees it. Written from docs/connect-over-nats/README.md.

import type { Msg, MsgHdrs } from "nats";
import {
  type Credit,
  creditUnsaid,
  decodeCredit,
  encodeCredit,
  type Frame,
  Kind,
  parseCredit,
} from "./frames/frame.ts";
import { FrameLine } from "./frames/frame-line.ts";
import { Intake } from "./intake.ts";
import type { Link } from "./link.ts";
import { metadataOf, sizeOf, toBlock } from "./metadata.ts";
import { Outbox, type Part } from "./outbox.ts";
import { encodeError, PeerError, toPeerError } from "./peer-error.ts";

const headRoom = 64;
const longestText = 1_000;

type Shape = "unary" | "server_streaming" | "client_streaming" | "bidi_streaming";

export interface RawContext {
  readonly metadata: Headers;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
  /** Metadata of the response, until its first message. */
  readonly header: Headers;
  readonly trailer: Headers;
  /** For tests of a server that breaks the rules. */
  readonly line: FrameLine;
  readonly outbox: Outbox;
}

export type RawHandler = (requests: AsyncIterable<Uint8Array>, context: RawContext) => AsyncIterable<Uint8Array>;

export interface ServerCallSetup {
  readonly shape: Shape;
  readonly window: Credit;
  readonly handler: RawHandler;
  onDone(): void;
}

export class ServerCall {
  readonly #setup: ServerCallSetup;
  readonly #line: FrameLine;
  readonly #maxPayload: number;
  readonly #intake: Intake;
  readonly #outbox: Outbox;
  readonly #abort = new AbortController();
  readonly #context: RawContext;
  #hasHeader = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(link: Link, opening: Msg, setup: ServerCallSetup) {
    this.#setup = setup;
    this.#maxPayload = link.maxPayload;
    this.#line = new FrameLine(
      link,
      {
        onFrame: (frame) => this.#onFrame(frame),
        onBroken: (error) => this.#fail(error),
      },
      opening.reply,
    );
    const isStreamOfRequests = setup.shape === "client_streaming" || setup.shape === "bidi_streaming";
    const more = opening.headers?.get("Rpc-More") === "1" && !isStreamOfRequests;
    const window = isStreamOfRequests ? setup.window : { messages: more ? 1 : 0, bytes: more ? setup.window.bytes : 0 };
    this.#intake = new Intake(window, (credit) => this.#grant(credit));
    this.#outbox = new Outbox(
      (part) => this.#post(part),
      parseCredit(opening.headers?.get("Rpc-Credit") ?? "") ?? creditUnsaid,
      () => this.#showItself(),
    );
    this.#context = this.#contextOf(opening);
    if (!isStreamOfRequests) this.#intake.open(opening.data, more);
    if (isStreamOfRequests || more) this.#grant(window);
    else this.#intake.end();
    if (setup.shape === "server_streaming" && !more) this.#line.send({ kind: Kind.heartbeat });
    this.#line.begin();
    void this.#run();
  }

  /** Aborts the handler and answers nothing. */
  cancel(): void {
    this.#end(new PeerError("canceled", "canceled by the client"));
  }

  refuse(error: PeerError): void {
    this.#fail(error);
  }

  async #run(): Promise<void> {
    const answers = this.#setup.handler(this.#intake, this.#context);
    try {
      if (this.#setup.shape === "unary" || this.#setup.shape === "client_streaming") await this.#answerOne(answers);
      else await this.#answerMany(answers);
      this.#end(undefined);
    } catch (error) {
      this.#fail(toPeerError(error));
    }
  }

  async #answerOne(answers: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const answer of answers) {
      await this.#outbox.send(answer, true);
      return;
    }
    throw new PeerError("unimplemented", "no answer");
  }

  async #answerMany(answers: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const answer of answers) await this.#outbox.send(answer);
    this.#line.send({ kind: Kind.end, headers: this.#block(true) });
  }

  #post(part: Part): void {
    this.#line.send({ kind: Kind.data, ...part, headers: this.#block(part.end) });
  }

  /** A client that has granted too little has to know where it can grant more. */
  #showItself(): void {
    if (this.#line.nextSequence === 0) this.#line.send({ kind: Kind.heartbeat });
  }

  #grant(credit: Credit): void {
    this.#line.send({ kind: Kind.credit, body: encodeCredit(credit) });
  }

  #block(isLast: boolean, error?: PeerError): MsgHdrs | undefined {
    const metadata = this.#hasHeader ? undefined : this.#context.header;
    this.#hasHeader = true;
    const trailers = new Headers(isLast ? this.#context.trailer : undefined);
    for (const [key, value] of error?.metadata ?? []) trailers.append(key, value);
    return toBlock({ metadata, trailers, own: deliveryOf(error) });
  }

  #onFrame({ kind, body, more, end }: Frame): void {
    try {
      if (kind === Kind.cancel) this.cancel();
      if (kind === Kind.credit) this.#outbox.add(decodeCredit(body));
      if (kind === Kind.data) this.#intake.take(body, more);
      if (kind === Kind.end || (kind === Kind.data && end)) this.#intake.finish();
    } catch (error) {
      this.#fail(toPeerError(error));
    }
  }

  #contextOf({ headers }: Msg): RawContext {
    const timeoutMs = headers?.has("Rpc-Timeout") ? Number(headers.get("Rpc-Timeout")) : undefined;
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => this.#fail(new PeerError("deadline_exceeded", "out of time")), timeoutMs);
    }
    const { signal } = this.#abort;
    const [line, outbox] = [this.#line, this.#outbox];
    return {
      metadata: metadataOf(headers),
      timeoutMs,
      signal,
      header: new Headers(),
      trailer: new Headers(),
      line,
      outbox,
    };
  }

  #fail(error: PeerError): void {
    if (this.#line.isClosed) return;
    this.#line.send({ kind: Kind.error, ...this.#fitting(error) });
    this.#end(error);
  }

  /** An error that does not fit goes without its details and metadata. */
  #fitting(error: PeerError): { body: Uint8Array; headers: MsgHdrs | undefined } {
    const whole = { body: encodeError(error), headers: this.#block(true, error) };
    if (whole.body.length + sizeOf(whole.headers) + headRoom <= this.#maxPayload) return whole;
    const short = new PeerError(error.code, error.text.slice(0, longestText), { delivery: error.delivery });
    return { body: encodeError(short), headers: toBlock({ own: deliveryOf(short) }) };
  }

  #end(error: PeerError | undefined): void {
    if (this.#line.isClosed) return;
    clearTimeout(this.#timer);
    this.#line.close();
    const reason = error ?? new PeerError("canceled", "the call is over");
    this.#intake.fail(reason);
    this.#outbox.fail(reason);
    if (error) this.#abort.abort(error);
    this.#setup.onDone();
  }
}

/** `UNKNOWN` is this side's view and does not travel. */
function deliveryOf(error: PeerError | undefined): Record<string, string> {
  return error?.delivery === "NOT_SENT" ? { "Rpc-Delivery": "NOT_SENT" } : {};
}
