import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-connect";
import {
  headerTimeout as grpcHeaderTimeout,
  parseTimeout as parseGrpcTimeout,
} from "@connectrpc/connect/protocol-grpc";
import type { HttpRequest } from "../messages.ts";

/** The longest time that Connect can wait for, 24.8 days: a longer one would be over at once, as Node's timers have it. */
const LONGEST_MS = 2 ** 31 - 1;

const HEADERS = [
  [headerTimeout.toLowerCase(), parseTimeout],
  [grpcHeaderTimeout.toLowerCase(), parseGrpcTimeout],
] as const;

/** A request whose time is longer than that has no limit. */
export function liftLongTimeouts({ headers }: HttpRequest): void {
  for (const [name, parse] of HEADERS) {
    const value = headers[name];
    if (typeof value !== "string") continue;
    const { timeoutMs = 0 } = parse(value, Number.MAX_SAFE_INTEGER);
    if (timeoutMs > LONGEST_MS) delete headers[name];
  }
}
