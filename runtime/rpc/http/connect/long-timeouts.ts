import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-connect";
import {
  headerTimeout as grpcHeaderTimeout,
  parseTimeout as parseGrpcTimeout,
} from "@connectrpc/connect/protocol-grpc";
import { LONGEST_WAIT_MS } from "../../../time/timer.ts";

const HEADERS = [
  [headerTimeout, parseTimeout],
  [grpcHeaderTimeout, parseGrpcTimeout],
] as const;

/** For Connect's own handlers, which take a time that no timer of Node's waits for as one that is over: such a request has no limit. */
export function liftLongTimeouts(header: Headers): void {
  for (const [name, parse] of HEADERS) {
    const { timeoutMs = 0 } = parse(header.get(name), Number.MAX_SAFE_INTEGER);
    if (timeoutMs > LONGEST_WAIT_MS) header.delete(name);
  }
}
