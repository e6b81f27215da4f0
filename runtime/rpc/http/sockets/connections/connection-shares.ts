import type { Socket } from "node:net";
import { refuseShare } from "../../../../failure/share.ts";
import { type HttpRequest, type HttpResponse, sinkOf } from "../../messages.ts";
import { answerThrown } from "../../refusal.ts";

/** How long a connection beyond the share may take to ask something, and to read why it is refused. */
const SURPLUS_MS = 5_000;

/**
 * SEC-6: how many connections one address may have open. On those beyond, the first request is answered with the refusal; at as many
 * again they are cut without a word.
 */
export class ConnectionShares {
  readonly #limit: number;
  readonly #countByAddress = new Map<string, number>();
  readonly #surplus = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  track(socket: Socket): void {
    const [address, peer] = [addressOf(socket), peerOf(socket)];
    const count = this.#countOf(address) + 1;
    this.#countByAddress.set(address, count);
    const isSurplus = count > this.#limit;
    if (isSurplus) this.#surplus.add(peer);
    const cut = isSurplus ? setTimeout(() => socket.destroy(), SURPLUS_MS) : undefined;
    socket.once("close", () => {
      clearTimeout(cut);
      this.#surplus.delete(peer);
      const left = this.#countOf(address) - 1;
      if (left > 0) this.#countByAddress.set(address, left);
      else this.#countByAddress.delete(address);
    });
    if (count > 2 * this.#limit) socket.destroy();
  }

  /** From half of the share on, a connection of HTTP/1.1 ends with its answer: idle ones would keep others of the address out. */
  isCrowded(socket: Peer): boolean {
    return this.#countOf(addressOf(socket)) > this.#limit / 2;
  }

  /** Says with `true` that it has answered, after which the connection ends. */
  refuses(request: HttpRequest, response: HttpResponse): boolean {
    if (this.#surplus.size === 0 || !this.#surplus.has(peerOf(request.socket))) return false;
    const session = "stream" in request ? request.stream.session : undefined;
    if (session === undefined) response.setHeader("connection", "close");
    else sinkOf(response).once("close", () => session.close());
    const what = { of: "this gateway", share: "open connections", limit: this.#limit, retryMs: SURPLUS_MS };
    try {
      refuseShare(addressOf(request.socket), { ...what, remedy: "send requests over one connection" });
    } catch (thrown) {
      answerThrown(request, response, thrown);
    }
    return true;
  }

  #countOf(address: string): number {
    return this.#countByAddress.get(address) ?? 0;
  }
}

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

export function addressOf({ remoteAddress = "" }: Peer): string {
  return remoteAddress;
}

export function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
