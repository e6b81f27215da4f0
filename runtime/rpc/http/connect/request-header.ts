import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-connect";
import {
  headerTimeout as grpcHeaderTimeout,
  parseTimeout as parseGrpcTimeout,
} from "@connectrpc/connect/protocol-grpc";
import { LONGEST_WAIT_MS } from "../../../time/timer.ts";

const TIMEOUTS = [
  [headerTimeout, parseTimeout],
  [grpcHeaderTimeout, parseGrpcTimeout],
] as const;

const CODINGS = ["content-encoding", "connect-content-encoding", "grpc-encoding"];

/**
 * Makes a header one that Connect's own handlers read as it was meant. They take a time that no timer of Node's waits for as one that is
 * over: such a request has no limit. And they know codings in small letters alone, which HTTP does not (RFC 9110, 8.4.1).
 */
export function readableForConnect(header: Headers): Headers {
  for (const [name, parse] of TIMEOUTS) {
    const { timeoutMs = 0 } = parse(header.get(name), Number.MAX_SAFE_INTEGER);
    if (timeoutMs > LONGEST_WAIT_MS) header.delete(name);
  }
  for (const name of CODINGS) {
    const coding = header.get(name)?.toLowerCase();
    if (coding !== undefined) header.set(name, coding === "x-gzip" ? "gzip" : coding);
  }
  return header;
}
