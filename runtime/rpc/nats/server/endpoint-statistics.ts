import type { Endpoint, NamedEndpointStats } from "@nats-io/services";
import type { ServerCall } from "./server-call.ts";

const NANOS_PER_MS = 1_000_000;

/**
 * What `nats micro stats` shows of one method. The services library measures how long a handler takes to return, which for an
 * asynchronous one says nothing, so its numbers are overwritten with these when it is asked.
 */
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
    this.#processingMs += Date.now() - call.startedAt;
    if (call.error) this.#failed(call.error.message);
  }

  refused(why: string): void {
    this.#requests += 1;
    this.#failed(why);
  }

  /** Writes the numbers into the library's endpoint; what it returns is shown as the endpoint's data. */
  report(endpoint: Endpoint): { in_flight: number } {
    if ("stats" in endpoint) Object.assign(endpoint.stats as NamedEndpointStats, this.#numbers());
    return { in_flight: this.#inFlight };
  }

  #failed(message: string): void {
    this.#errors += 1;
    this.#lastError = message;
  }

  #numbers(): Partial<NamedEndpointStats> {
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
