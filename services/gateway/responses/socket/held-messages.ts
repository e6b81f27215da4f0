import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";

export interface Holding {
  /** The connection below the WebSocket. */
  readonly connection: Duplex;
  /** Counts bytes that are held, or by a negative number are no longer; throws where they are too many. */
  readonly hold: (bytes: number) => void;
  /** Told once; what comes from then on is passed over. */
  readonly onFull: (error: unknown) => void;
}

/** Counts what comes on a WebSocket until the turn of its message is over, of a message that never ends too, as bodies of requests are. */
export class HeldMessages implements Disposable {
  readonly #holding: Holding;
  readonly #whole: number[] = [];
  #coming = 0;

  constructor(socket: WebSocket, holding: Holding) {
    this.#holding = holding;
    holding.connection.prependListener("data", this.#came);
    socket.on("message", () => {
      this.#whole.push(this.#coming);
      this.#coming = 0;
    });
  }

  /** The turn of the first message is over. */
  giveBack(): void {
    this.#holding.hold(-(this.#whole.shift() ?? 0));
  }

  [Symbol.dispose](): void {
    const { connection, hold } = this.#holding;
    connection.off("data", this.#came);
    hold(-this.#whole.reduce((sum, bytes) => sum + bytes, this.#coming));
  }

  readonly #came = ({ length }: Uint8Array): void => {
    const { connection, hold, onFull } = this.#holding;
    try {
      hold(length);
      this.#coming += length;
    } catch (error) {
      connection.removeAllListeners("data").resume();
      onFull(error);
    }
  };
}
