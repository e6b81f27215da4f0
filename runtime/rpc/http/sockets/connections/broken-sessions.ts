import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { startTimer } from "../../../../time/timer.ts";
import { addressOf } from "./connection-shares.ts";

/** While sessions of an address broke lately, the next ones begin so far apart; who would wait longer than the most is cut. */
const STEP_MS = 250;
const MOST_MS = 5_000;
const LATELY_MS = 10_000;

/**
 * SEC-5: a connection is closed once its peer breaks the rules of HTTP/2, such as the one of how many streams may be reset at once. What
 * has been read of it by then has cost this process some 75 ms; who connects anew each time would pay nothing, and keep everybody
 * waiting. So the next sessions of its address begin one after another. Those that have begun, and HTTP/1.1, go on.
 */
export class BrokenSessions {
  readonly #byAddress = new Map<string, { lately: number; nextAtMs: number }>();

  watch(session: ServerHttp2Session): void {
    const address = addressOf(session.socket);
    session.once("error", ({ code }: NodeJS.ErrnoException) => {
      if (code !== "ERR_HTTP2_ERROR") return; // the line broke, not a rule
      const broken = this.#byAddress.get(address) ?? { lately: 0, nextAtMs: performance.now() + STEP_MS };
      broken.lately += 1;
      this.#byAddress.set(address, broken);
      const forget = () => {
        broken.lately -= 1;
        if (broken.lately === 0) this.#byAddress.delete(address);
      };
      startTimer(LATELY_MS, forget, { isBackground: true });
    });
  }

  /** Begins a session, at once where none broke; nothing more is read of the connection before. */
  begin(socket: Socket, serve: () => void): void {
    const broken = this.#byAddress.get(addressOf(socket));
    if (broken === undefined) {
      serve();
      return;
    }
    const atMs = Math.max(performance.now(), broken.nextAtMs);
    const waitMs = atMs - performance.now();
    if (waitMs > MOST_MS) {
      socket.destroy();
      return;
    }
    broken.nextAtMs = atMs + STEP_MS;
    socket.on("error", () => {}); // its end is looked at then
    startTimer(waitMs, () => socket.destroyed || serve(), { isBackground: true });
  }
}
