import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { unknownOutcome } from "./delivery.ts";
import { readMetadata } from "./headers.ts";

export function parseAnswer<O extends DescMessage>(desc: O, body: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(desc, body);
  } catch (error) {
    throw unknownOutcome(`the answer is no ${desc.typeName}`, Code.Internal, error);
  }
}

/** The metadata of an answer, read from its message when somebody asks. */
export class AnswerMetadata {
  readonly #entries: Iterable<[string, string[]]> | undefined;
  #read: { header: Headers; trailer: Headers } | undefined;

  constructor(entries: Iterable<[string, string[]]> | undefined) {
    this.#entries = entries;
  }

  get header(): Headers {
    return this.#readOnce().header;
  }

  get trailer(): Headers {
    return this.#readOnce().trailer;
  }

  #readOnce(): { header: Headers; trailer: Headers } {
    if (!this.#read) {
      this.#read = { header: new Headers(), trailer: new Headers() };
      readMetadata(this.#entries, this.#read.header, this.#read.trailer);
    }
    return this.#read;
  }
}
