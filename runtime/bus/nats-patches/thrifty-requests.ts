import { errors, type NatsConnection } from "@nats-io/transport-node";

/** A request as the client keeps it; not part of its interface, and so looked at before it is used. */
interface Request {
  readonly timer?: { cancel(): void };
  readonly mux: { cancel(request: Request): void };
  readonly deferred: { reject(reason: unknown): void };
}

interface Requests {
  add: (request: object) => unknown;
}

const CANCELED = new errors.RequestError("canceled");
const thrifty = new WeakSet<object>();

/**
 * Makes requests that were answered end without an error. The client ends each of them by canceling it, with an error
 * that nobody sees, and whose stack costs as much as the rest of the request.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
export function saveOnRequests(connection: NatsConnection): void {
  const { protocol } = connection as unknown as { protocol?: { muxSubscriptions?: Requests } };
  const requests = protocol?.muxSubscriptions;
  if (typeof requests?.add !== "function") return; // another release of the client: it does as it does
  const add = requests.add.bind(requests);
  requests.add = (request) => {
    const kind: object = Object.getPrototypeOf(request);
    if (isSingle(request) && Object.hasOwn(kind, "cancel") && !thrifty.has(kind)) {
      thrifty.add(kind);
      Object.assign(kind, { cancel: cancelThriftily });
    }
    return add(request);
  };
}

function cancelThriftily(this: Request, error?: unknown): void {
  this.timer?.cancel();
  this.mux.cancel(this);
  this.deferred.reject(error ?? CANCELED);
}

/** Those that expect many answers end in another way. */
function isSingle(request: object): request is Request {
  return "deferred" in request && "timer" in request && "mux" in request;
}
