import { ConnectError } from "@connectrpc/connect";
import { connectError, copiedError } from "../../failure/connect.ts";
import { startTimer } from "../../time/timer.ts";

/**
 * The signal of one call, made when somebody asks for it: most calls end without anybody having looked. Aborted by the
 * caller's signal, at the deadline, by a failure, and, as Connect has it, when the call is over.
 */
export class CallSignal {
  #controller: AbortController | undefined;
  #outcome: { reason: unknown } | undefined;
  #outer: AbortSignal | undefined;
  #stopTimer: (() => void) | undefined;
  #listener: ((reason: unknown) => void) | undefined;

  constructor(outer?: AbortSignal, timeoutMs?: number) {
    if (timeoutMs !== undefined) this.#stopTimer = startTimer(Math.max(timeoutMs, 0), () => this.abort(timedOut()));
    if (outer?.aborted) this.abort(ownOf(outer.reason));
    else if (outer) {
      this.#outer = outer;
      outer.addEventListener("abort", this, { once: true });
    }
  }

  /** The signal itself, for those who want to listen. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#outcome) this.#controller.abort(this.#outcome.reason);
    }
    return this.#controller.signal;
  }

  get aborted(): { reason: unknown } | undefined {
    return this.#outcome;
  }

  /** The listener is called at once when the call is given up already. */
  whenAborted(listener: (reason: unknown) => void): void {
    if (this.#outcome) listener(this.#outcome.reason);
    else this.#listener = bothOf(this.#listener, listener);
  }

  handleEvent(): void {
    this.abort(ownOf(this.#outer?.reason));
  }

  abort(reason: unknown): void {
    if (this.#outcome) return;
    this.#finish(reason);
    this.#listener?.(reason);
  }

  /** The call is over: whoever holds the signal may clean up. */
  end(reason: unknown = CALL_OVER): void {
    if (!this.#outcome) this.#finish(reason);
  }

  #finish(reason: unknown): void {
    this.#outcome = { reason };
    this.#stopTimer?.();
    this.#outer?.removeEventListener("abort", this);
    this.#controller?.abort(reason);
  }
}

/** Made once: an error with a stack for each call that ends well would cost more than the rest of its ending. */
const CALL_OVER = connectError("canceled", "the call is over", { reason: "CANCELED" });

/** A signal may end many calls with one error, and what is known of the delivery of each is written on its own. */
function ownOf(reason: unknown): unknown {
  return reason instanceof ConnectError ? copiedError(reason) : reason;
}

function timedOut(): ConnectError {
  return connectError("deadline_exceeded", "the operation timed out", { reason: "DEADLINE_EXCEEDED" });
}

type Listener = (reason: unknown) => void;

function bothOf(first: Listener | undefined, second: Listener): Listener {
  if (!first) return second;
  return (reason) => {
    first(reason);
    second(reason);
  };
}
