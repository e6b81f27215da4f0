import type { ConnectError } from "@connectrpc/connect";
import type { Msg } from "@nats-io/nats-core";
import { readMetadata } from "../frame/headers.ts";

/** How the other end of a call begins: it shows itself, and on the client its metadata comes before the first answer. */
export class Beginning {
  /** Resolves when the peer has shown itself; rejects when the call fails before. */
  readonly opened: Promise<void>;
  /** The metadata that came before the first answer; rejects when the call fails without any. */
  readonly header: Promise<Headers>;
  readonly #opened = Promise.withResolvers<void>();
  readonly #header = Promise.withResolvers<Headers>();
  #isHeaderRead = false;

  constructor() {
    this.opened = this.#opened.promise;
    this.header = this.#header.promise;
    for (const promise of [this.opened, this.header]) promise.catch(() => {}); // whoever reads messages gets the same error
  }

  show(): void {
    this.#opened.resolve();
  }

  /** Of the frames that answer only the first has metadata. */
  readHeader(message: Msg): void {
    if (this.#isHeaderRead) return;
    this.#isHeaderRead = true;
    const header = new Headers();
    readMetadata(message.headers, header);
    this.#header.resolve(header);
  }

  /** The call is over: what has not come does not come. */
  end(error: ConnectError | undefined): void {
    if (!error) {
      this.#opened.resolve();
      return;
    }
    this.#opened.reject(error);
    this.#header.reject(error);
  }
}
