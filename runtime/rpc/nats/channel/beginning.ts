import type { ConnectError } from "@connectrpc/connect";
import type { Msg } from "@nats-io/nats-core";
import { readMetadata } from "../frame/headers.ts";

/** How the other end of a call begins: it shows itself, and on the client its metadata comes before the first answer. */
export class Beginning {
  readonly #opened = Promise.withResolvers<void>();
  readonly #header = Promise.withResolvers<Headers>();
  /** Resolves when the peer has shown itself; rejects when the call fails before. */
  readonly opened = this.#opened.promise;
  /** The metadata that came before the first answer; rejects when the call fails without any. */
  readonly header = this.#header.promise;
  #isHeaderRead = false;

  constructor() {
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
