import { AsyncLocalStorage } from "node:async_hooks";
import { connectError } from "../../../failure/connect.ts";
import { comesWithin } from "../../../time/comes-within.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import { Assembly, type AssemblyRoom, noRoom } from "../../handling/messages/assembly.ts";
import { ByteBudget } from "../../handling/messages/byte-budget.ts";
import type { Count } from "../large-messages/counted-messages.ts";
import { bodyOfRequest, type HttpRequest, type HttpResponse, isAddress, senderOf, sinkOf } from "../messages.ts";
import { Pace, type PaceLimits } from "./pace.ts";
import { type Body, gone, isCutOff, readBody } from "./read-body.ts";

/** What the bodies of requests may cost. */
export interface BodyLimits extends PaceLimits {
  /** What the requests of one connection hold together, as sent and unpacked. */
  readonly connectionBytes: number;
  /** Counts what the requests of a sender hold together, over all its connections; refuses more than it may. */
  readonly holdFor: ReturnType<typeof createSenderBytes>;
  /** What the large bodies of all connections hold together (`assembly.ts`). */
  readonly room: AssemblyRoom;
  /** How long a large body waits for room before its request is refused. */
  readonly roomPatienceMs: number;
}

/** A part costs some work, and a hundred bytes where it is held, however short it is: beyond the first ones their mean is no less. */
const LEAST_PART_BYTES = 32;
/** Each body has so much of its own, so that who shares a connection with one of short parts can still ask. */
const OWN_LACK_BYTES = 128 * LEAST_PART_BYTES;
const CONNECTION_LACK_BYTES = 4_096 * LEAST_PART_BYTES;

/** What senders hold; nothing is kept of one that holds nothing. */
export function createSenderBytes(ofPrincipal: number, ofAddress = ofPrincipal) {
  const heldBySender = new Map<string, number>();
  return (sender: string, bytes: number): void => {
    const held = (heldBySender.get(sender) ?? 0) + bytes;
    const limit = isAddress(sender) ? ofAddress : ofPrincipal;
    if (bytes > 0 && held > limit) throw senderFull(limit);
    if (held === 0) heldBySender.delete(sender);
    else heldBySender.set(sender, held);
  };
}

/** What the requests of one connection share. */
export class ConnectionBudget {
  readonly held: ByteBudget;
  /** What the parts of a body lack, beyond what each may. */
  readonly lack = new ByteBudget(CONNECTION_LACK_BYTES);

  constructor(limits: BodyLimits) {
    this.held = new ByteBudget(limits.connectionBytes);
  }
}

const current = new AsyncLocalStorage<Count>();

/**
 * The body of one request, which is read only when somebody asks for it. What was read counts against its connection until the
 * request is answered, and it must come in time. Whoever reads beyond that gets the error that is to be the answer.
 */
export class RequestBody implements AsyncIterable<Uint8Array> {
  readonly #request: HttpRequest;
  readonly #budget: ConnectionBudget;
  readonly #limits: BodyLimits;
  readonly #assembly: Assembly;
  #room: PromiseWithResolvers<void> | undefined;
  #held = 0;
  #sender = "";
  #isClosed = false;
  #lack = 0;
  #sharedLack = 0;

  constructor(
    { request, response }: { request: HttpRequest; response: HttpResponse },
    budget: ConnectionBudget,
    limits: BodyLimits,
  ) {
    this.#request = request;
    this.#budget = budget;
    this.#limits = limits;
    const sender = () => senderOf(request);
    this.#assembly = new Assembly({ room: limits.room, sender }, () => this.#room?.resolve());
    sinkOf(response).once("close", () => {
      this.#isClosed = true;
      this.#budget.held.giveBack(this.#held);
      this.#limits.holdFor(this.#sender, -this.#held);
      this.#budget.lack.giveBack(this.#sharedLack);
      this.#held = 0;
      this.#sharedLack = 0;
      this.#assembly.close();
      this.#room?.reject(gone());
    });
  }

  /** Does the work so that what it unpacks is held with this body, and counted. */
  whileServed<T>(count: Count, work: () => T): T {
    const unpacked = async (message: Uint8Array) => {
      this.hold(message.length);
      await count(message);
    };
    return current.run(unpacked, work);
  }

  /** Counts bytes that the request holds. Throws when its connection, or its sender, holds too many. */
  hold(bytes: number): void {
    if (this.#isClosed) throw gone(); // nothing gives back what is held from now on
    const { held } = this.#budget;
    if (held.offer(bytes) < bytes) throw connectionFull(held.limit);
    this.#sender ||= senderOf(this.#request);
    this.#limits.holdFor(this.#sender, bytes);
    this.#held += held.take(bytes);
  }

  /** Holds what was read of the body; gives a promise where nothing more is to be read until there is room for all of it. */
  #grew(bytes: number): Promise<void> | undefined {
    this.hold(bytes);
    this.#countPart(bytes);
    if (this.#assembly.grew(bytes)) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#roomComes(this.#room.promise);
  }

  /** A long part makes up for short ones before it. */
  #countPart(bytes: number): void {
    const { lack } = this.#budget;
    this.#lack = Math.max(this.#lack + LEAST_PART_BYTES - bytes, 0);
    const more = Math.max(this.#lack - OWN_LACK_BYTES, 0) - this.#sharedLack;
    if (more > 0 && lack.offer(more) < more) throw partsTooShort();
    this.#sharedLack += more;
    lack.giveBack(-more);
  }

  async #roomComes(room: Promise<void>): Promise<void> {
    const { roomPatienceMs } = this.#limits;
    if (!(await comesWithin(roomPatienceMs, room))) throw noRoom(roomPatienceMs);
  }

  /** The whole of it, unless it is longer than `maxBytes`: then the rest is still to be iterated. */
  async read(maxBytes: number): Promise<Body> {
    const body = await readBody(bodyOfRequest(this.#request), {
      maxBytes,
      hold: (bytes) => this.#grew(bytes),
      pace: (onSlow) => new Pace(this.#limits, false, () => onSlow(tooSlow())),
    });
    if (body.kind === "whole") this.#assembly.whole();
    return body;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#parts(false);
  }

  /** A stream of messages: what was read is not held, as nobody knows when it has been taken. */
  messages(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#parts(true) };
  }

  async *#parts(isEndless: boolean): AsyncGenerator<Uint8Array> {
    const slow = new AbortController();
    const pace = new Pace(this.#limits, isEndless, () => slow.abort(tooSlow()));
    // Whoever stops in between may still answer, so the stream is left as it is.
    const source = bodyOfRequest(this.#request);
    const parts = source.iterator({ destroyOnReturn: false });
    try {
      for (;;) {
        const part = await unlessAborted(parts.next().catch(throwGone), slow.signal);
        if (part.done && isCutOff(source)) throwGone();
        if (part.done) this.#assembly.whole();
        if (part.done) return;
        const bytes: Uint8Array = part.value;
        pace.came(bytes.length);
        const room = isEndless ? undefined : this.#grew(bytes.length);
        if (room) {
          pace.holdBack();
          await room;
          pace.goOn();
        }
        yield bytes;
      }
    } finally {
      pace.stop();
    }
  }
}

/** A message of the request that is being served was unpacked. */
export async function takeUnpacked(message: Uint8Array): Promise<void> {
  await current.getStore()?.(message);
}

function throwGone(cause?: unknown): never {
  throw gone(cause);
}

function tooSlow(): Error {
  const text = "the body of the request did not come in time: send it whole, and faster";
  return connectError("deadline_exceeded", text, { reason: "DEADLINE_EXCEEDED" });
}

function partsTooShort(): Error {
  const text = "the body of the request came in thousands of parts of a few bytes: write it in longer parts";
  return connectError("invalid_argument", text, { reason: "REQUEST_MALFORMED" });
}

function connectionFull(limit: number): Error {
  const text = `the requests of this connection hold more than ${limit} bytes together: wait for answers, or use more connections, within the share of the principal`;
  return connectError("resource_exhausted", text, { reason: "CONNECTION_FULL" });
}

function senderFull(limit: number): Error {
  const share = "bytes of requests in flight";
  const text = `the requests of this principal hold more than ${limit} ${share} together: wait for answers`;
  const metadata = { share, limit: String(limit), retry_in_ms: "1000" };
  return connectError("resource_exhausted", text, { reason: "SHARE_EXCEEDED", metadata });
}
