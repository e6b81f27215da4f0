import type { Endpoint } from "@nats-io/services";
import { type EndpointNumbers, writeEndpointNumbers } from "../../../bus/nats-patches/endpoint-numbers.ts";
import type { ServerCall } from "./server-call.ts";

const NANOS_PER_MS = 1_000_000;

/** What `nats micro stats` shows of one method. */
export class EndpointStatistics {
  #requests = 0;
  #errors = 0;
  #processingMs = 0;
  #inFlight = 0;
  #lastError = "";

  started(): void {
    this.#inFlight += 1;
  }

  ended(call: ServerCall): void {
    this.#inFlight -= 1;
    this.#requests += 1;
    this.#processingMs += performance.now() - call.startedAt;
    if (call.error) this.#failed(call.error.message);
  }

  refused(why: string): void {
    this.#requests += 1;
    this.#failed(why);
  }

  /** Writes the numbers into the library's endpoint; what it returns is shown as the endpoint's data. */
  report(endpoint: Endpoint): { in_flight: number } {
    writeEndpointNumbers(endpoint, this.#numbers());
    return { in_flight: this.#inFlight };
  }

  #failed(message: string): void {
    this.#errors += 1;
    this.#lastError = message;
  }

  #numbers(): EndpointNumbers {
    const processing = Math.round(this.#processingMs * NANOS_PER_MS);
    return {
      num_requests: this.#requests,
      num_errors: this.#errors,
      last_error: this.#lastError,
      processing_time: processing,
      average_processing_time: this.#requests === 0 ? 0 : Math.round(processing / this.#requests),
    };
  }
}
