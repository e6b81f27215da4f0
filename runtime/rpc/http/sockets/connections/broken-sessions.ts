import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { startTimer } from "../../../../time/timer.ts";
import { addressOf } from "./connection-shares.ts";

/** What an address waits for each session of it that broke lately, and at most. */
const STEP_MS = 250;
const MOST_MS = 5_000;
const LATELY_MS = 10_000;

/**
 * SEC-5: a connection is closed once its peer breaks the rules of HTTP/2, such as the one of how many streams may be reset at once. What
 * has been read of it by then has cost this process some 75 ms; who connects anew each time would pay nothing, and keep everybody
 * waiting. So the next session of its address begins later, the more have broken.
 */
export class BrokenSessions {
  readonly #countByAddress = new Map<string, number>();

  watch(session: ServerHttp2Session): void {
    const address = addressOf(session.socket);
    session.once("error", ({ code }: NodeJS.ErrnoException) => {
      if (code !== "ERR_HTTP2_ERROR") return; // the line broke, not a rule
      this.#count(address, 1);
      startTimer(LATELY_MS, () => this.#count(address, -1), { isBackground: true });
    });
  }

  /** Begins a session, at once where none broke; nothing more is read of the connection before. */
  begin(socket: Socket, serve: () => void): void {
    const waitMs = Math.min((this.#countByAddress.get(addressOf(socket)) ?? 0) * STEP_MS, MOST_MS);
    if (waitMs === 0) {
      serve();
      return;
    }
    socket.on("error", () => {}); // its end is looked at then
    startTimer(waitMs, () => socket.destroyed || serve(), { isBackground: true });
  }

  #count(address: string, more: number): void {
    const count = (this.#countByAddress.get(address) ?? 0) + more;
    if (count === 0) this.#countByAddress.delete(address);
    else this.#countByAddress.set(address, count);
  }
}
