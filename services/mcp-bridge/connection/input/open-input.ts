import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type InputRequest,
  type InputRequired,
  InputRequiredSchema,
  type InputResponses,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { stateFrom } from "./required.ts";

const MOST_ASKED = 100;

/** What a call that its server holds open has asked for, one thing at a time. */
export class OpenInput {
  readonly #onAsked: (required: InputRequired) => void;
  #standing: { required: InputRequired; answered: PromiseWithResolvers<string> } | undefined;
  #last: Promise<void> = Promise.resolve();
  #count = 0;
  #waiting = 0;

  constructor(onAsked: (required: InputRequired) => void) {
    this.#onAsked = onAsked;
  }

  /** What stands to be answered. */
  get required(): InputRequired | undefined {
    return this.#standing?.required;
  }

  /** Resolves with the answer as JSON text. */
  async ask(request: InputRequest["request"], signal: AbortSignal): Promise<string> {
    if (this.#waiting >= MOST_ASKED)
      refuse("resource_exhausted", `a call is asked ${MOST_ASKED} things at once at most`, {
        reason: "SHARE_EXCEEDED",
      });
    this.#waiting += 1;
    const before = this.#last;
    const over = Promise.withResolvers<void>();
    this.#last = before.then(() => over.promise);
    const answered = Promise.withResolvers<string>();
    try {
      await unlessAborted(before, signal);
      this.#count += 1;
      const required = create(InputRequiredSchema, {
        requests: [{ id: `${this.#count}`, request }],
        state: stateFrom({ live: randomUUID() }),
        live: true,
      });
      this.#standing = { required, answered };
      this.#onAsked(required);
      return await unlessAborted(answered.promise, signal);
    } finally {
      if (this.#standing?.answered === answered) this.#standing = undefined;
      this.#waiting -= 1;
      over.resolve();
    }
  }

  /** What is answered too late, or a second time, changes nothing. */
  answer({ state, responses: [response] }: InputResponses): void {
    const { required, answered } = this.#standing ?? {};
    if (required && response && Buffer.compare(required.state, state) === 0) answered?.resolve(response.resultJson);
  }
}
