import { randomUUID } from "node:crypto";
import { Code, type ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import type { NatsConnection, Subscription } from "@nats-io/nats-core";
import { type Service, Svcm } from "@nats-io/services";
import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import { until } from "#runtime/time/until.ts";
import { isInbox } from "../../../bus/credentials/inbox.ts";
import { callPatience } from "../../../bus/link/call-patience.ts";
import { VERSION } from "../../../config/version.ts";
import { connectError } from "../../../failure/connect.ts";
import { methodsFromRoutes } from "../../handling/recording-router.ts";
import { notSent } from "../call/delivery.ts";
import { DEFAULT_TIMINGS, type Timings } from "../call/timings.ts";
import { CallMux, type MuxCall } from "../channel/mux.ts";
import { cancelSubjectOf, endpointNameOf, microNameOf, subjectOfMethod, urlOfMethod } from "../channel/subjects.ts";
import { fittingError } from "../frame/error-frame.ts";
import { bytesFromFrame, FrameFlag, FrameKind } from "../frame/frame.ts";
import { HeaderKey } from "../frame/headers.ts";
import { type Opening, type OpeningMessage, parseOpening } from "../frame/opening.ts";
import { Ages } from "./ages.ts";
import { EndpointStatistics } from "./endpoint-statistics.ts";
import { answerCall } from "./server-answer.ts";
import { type ServedMethod, ServerCall } from "./server-call.ts";

/*
 * The serving side.
 *
 *   queue group ──▶ CallServer.open ──▶ ServerCall ──▶ answerCall ──▶ implementation
 *   cancel subject ──▶ canceled
 *   timer ──▶ "working" notices
 *
 * server-1  A request whose caller has given it up by now is refused before anything is started. One that goes on in frames is not
 *     judged: a caller that has given it up does not send the rest.
 * server-2  A cancel that overtakes its request is remembered by the call's id for as long as the request could still come.
 * server-3  Stopping leaves the queue group first; what was delivered until the server confirmed that is still served.
 * server-4  A stop waits for the calls in its hands, up to `drainTimeoutMs`; then their handlers are aborted and the callers told.
 * server-5  An opening with the id of a call under way is ignored: an answer to it would be read as that call's.
 */

export interface NatsServerOptions {
  /** The service on the bus, which is also its queue group. */
  readonly service: string;
  /** Tells this instance from the others, in `nats micro info`. */
  readonly instance?: string;
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors?: Interceptor[];
  readonly logger?: { error(details: object, message: string): void };
  readonly timings?: Timings;
  /** How long a stop waits for calls that are under way. */
  readonly drainTimeoutMs?: number;
  readonly version?: string;
}

const DRAIN_TIMEOUT_MS = 10_000;

/** Serves a Connect router on the bus. Resolves when calls can come; disposing stops taking calls and finishes those it has. */
export async function serveOnNats(
  bus: { connection: NatsConnection },
  options: NatsServerOptions,
): Promise<AsyncDisposable> {
  const server = new CallServer(bus.connection, options);
  await server.start();
  return server;
}

class CallServer implements AsyncDisposable, MuxCall {
  readonly #connection: NatsConnection;
  readonly #options: NatsServerOptions;
  readonly #timings: Timings;
  readonly #mux: CallMux;
  readonly #calls = new TransientMap<ServerCall>();
  /** Call id → when it may be forgotten (server-2). */
  readonly #canceled = new Map<string, number>();
  readonly #statistics = new Map<string, EndpointStatistics>();
  #service: Service | undefined;
  #cancels: Subscription | undefined;
  readonly #ages = new Ages();
  #ticker = "";
  #stopped: Promise<void> | undefined;

  constructor(connection: NatsConnection, options: NatsServerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#timings = options.timings ?? DEFAULT_TIMINGS;
    this.#mux = CallMux.of(connection);
  }

  async start(): Promise<void> {
    const { service, instance = randomUUID(), version = VERSION, routes, interceptors = [] } = this.#options;
    this.#ticker = this.#mux.register(this);
    this.#cancels = this.#connection.subscribe(cancelSubjectOf(service), {
      callback: (error, message) => (error ? this.#broken(error) : this.#cancel(message.string())),
    });
    // The library depends on another release of the client, whose connection differs in its types only.
    this.#service = await new Svcm(this.#connection).add({
      name: microNameOf(service),
      version,
      queue: microNameOf(service),
      metadata: { instance },
      statsHandler: async (endpoint) => this.#statistics.get(endpoint.subject)?.report(endpoint),
    });
    void this.#service.stopped.then((error) => error && this.#broken(error));
    for (const recorded of methodsFromRoutes(routes, interceptors)) {
      const url = urlOfMethod(service, recorded.spec.method);
      this.#serve({ ...recorded, url, protocolName: "nats", mux: this.#mux, timings: this.#timings });
    }
    await this.#connection.flush();
  }

  #serve(method: ServedMethod): void {
    const descriptor = method.spec.method;
    const subject = subjectOfMethod(this.#options.service, descriptor);
    const statistics = new EndpointStatistics();
    this.#statistics.set(subject, statistics);
    this.#service?.addEndpoint(endpointNameOf(descriptor), {
      subject,
      metadata: { method: `${descriptor.parent.typeName}/${descriptor.name}`, kind: descriptor.methodKind },
      handler: (error, message) => (error ? this.#broken(error) : this.#open(method, statistics, message)),
    });
  }

  #open(method: ServedMethod, statistics: EndpointStatistics, message: OpeningMessage): void {
    const inbox = message.reply;
    if (!inbox || !isInbox(inbox) || this.#calls.get(inbox) || this.#canceled.delete(inbox)) return; // server-5, server-2; or no answer is asked for
    const opening = parseOpening(message);
    if (typeof opening === "string") {
      this.#refuse(inbox, statistics, notSent(opening, Code.InvalidArgument));
      return;
    }
    const now = performance.now();
    const age = Math.max(this.#ages.ageOf(opening.sent, now), this.#mux.stalledMs);
    const refusal = refusalOf(method, opening, { payload: message.data, ageMs: age });
    if (refusal) {
      this.#refuse(inbox, statistics, refusal);
      return;
    }
    const call = new ServerCall(method, opening, inbox);
    this.#calls.set(inbox, call);
    statistics.started();
    void callPatience
      .run(() => answerCall(call, message.data), opening.patienceMs)
      .finally(() => {
        this.#calls.delete(inbox);
        statistics.ended(call);
      });
  }

  #refuse(inbox: string, statistics: EndpointStatistics, refusal: ConnectError): void {
    statistics.refused(refusal.message);
    const { body, headers } = fittingError(this.#mux.maxPayloadBytes, refusal, { delivery: "NOT_SENT" });
    this.#mux.publish(inbox, bytesFromFrame(FrameKind.error, FrameFlag.none, 0, body), { headers });
  }

  #cancel(inbox: string): void {
    const call = this.#calls.get(inbox);
    if (call) call.cancel();
    else this.#canceled.set(inbox, performance.now() + this.#timings.silenceMs);
  }

  receive(): void {
    // Nobody knows this address: the server is registered for the timer and for the connection's failures.
  }

  tick(now: number): void {
    for (const call of this.#calls.values()) call.showLife(now);
    for (const [inbox, forgetAt] of this.#canceled) {
      if (forgetAt > now) break; // they stand in the order of their coming
      this.#canceled.delete(inbox);
    }
  }

  fail(error: ConnectError): void {
    for (const call of this.#calls.values()) call.lose(error); // their callers have given them up, and canceled nothing
  }

  #broken(error: Error): void {
    if (!this.#stopped) this.#options.logger?.error({ err: error }, "a subscription of this service was closed");
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    await this.#service?.stop(); // server-3: drains its subscriptions and waits until the server has confirmed
    const { drainTimeoutMs = DRAIN_TIMEOUT_MS } = this.#options;
    try {
      await until(() => this.#calls.size === 0, { timeoutMs: drainTimeoutMs, what: "the calls under way" });
    } catch {
      for (const call of this.#calls.values())
        call.abort(connectError("unavailable", "the service is stopping", { reason: "INSTANCE_STOPPING" })); // server-4
    }
    this.#mux.release(this.#ticker);
    this.#cancels?.unsubscribe();
    if (this.#connection.isClosed()) return;
    await this.#connection.flush().catch(() => {}); // fails when the connection is away, and then has nothing to flush
  }
}

function refusalOf(
  { spec, timings }: ServedMethod,
  opening: Opening,
  { payload, ageMs }: { payload: Uint8Array; ageMs: number },
): ConnectError | undefined {
  const lateMs = ageMs - Math.min(timings.silenceMs, opening.timeoutMs ?? timings.silenceMs);
  if (lateMs > 0 && !opening.hasMore) {
    const late = `the request came ${Math.ceil(lateMs)} ms after its time and was not started`;
    return notSent(late, Code.DeadlineExceeded); // server-1
  }
  if (spec.kind === "unary" || spec.kind === "server_streaming") return undefined;
  if (payload.length > 0) return notSent("a call that streams its requests opens with none", Code.InvalidArgument);
  if (!opening.hasMore) return undefined;
  return notSent(`the header ${HeaderKey.more} is for calls of one request`, Code.InvalidArgument);
}
