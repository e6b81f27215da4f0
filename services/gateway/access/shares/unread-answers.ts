import { constants } from "node:http2";
import { type HttpResponse, sinkOf } from "#runtime/rpc/http/messages.ts";

const LOOK_EVERY_MS = 250;
/** Nobody reads an answer of which nothing has left at so many looks. */
const MOST_STILL_LOOKS = 8;
/** So much leaves a connection between two looks while its client reads: a write of many MiB counts as unread until its last byte. */
const READ_BYTES = 64 * 1024;

/** An answer, as it was at the last look. */
interface Answer {
  readonly response: HttpResponse;
  unread: number;
  sent: number;
  stillLooks: number;
}

/** SEC-6: what the clients of one principal leave unread of their answers, which this process holds until they read it. */
export class UnreadAnswers {
  readonly #maxBytes: number;
  readonly #open = new Map<string, Set<Answer>>();

  /** `maxBytes`: of all answers to a principal. Where it is more, those are cut that nobody reads; where it is twice that, any. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts an answer until what it gives is called. */
  track(principal: string, response: HttpResponse): () => void {
    const answer = { response, unread: 0, sent: 0, stillLooks: 0 };
    const own = this.#open.get(principal);
    if (own === undefined) this.#follow(principal, new Set([answer]));
    else own.add(answer);
    return () => void this.#open.get(principal)?.delete(answer);
  }

  #follow(principal: string, own: Set<Answer>): void {
    this.#open.set(principal, own);
    const looking = setInterval(() => {
      if (own.size === 0) {
        clearInterval(looking);
        this.#open.delete(principal);
      }
      let bytes = 0;
      for (const answer of own) bytes += lookAt(answer);
      for (const { response, unread, stillLooks } of [...own].sort((one, other) => other.unread - one.unread)) {
        if (bytes <= this.#maxBytes || unread === 0) return;
        if (stillLooks < MOST_STILL_LOOKS && bytes <= 2 * this.#maxBytes) continue;
        bytes -= unread;
        cut(response);
      }
    }, LOOK_EVERY_MS).unref();
  }
}

function lookAt(answer: Answer): number {
  const unread = sinkOf(answer.response).writableLength;
  const sent = answer.response.socket?.bytesWritten ?? 0;
  const isRead = answer.unread === 0 || unread < answer.unread || sent - answer.sent >= READ_BYTES;
  Object.assign(answer, { unread, sent, stillLooks: isRead ? 0 : answer.stillLooks + 1 });
  return unread;
}

/** Over HTTP/2, a stream that is destroyed without an error ends as one that is whole. */
function cut(response: HttpResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else response.destroy();
}
