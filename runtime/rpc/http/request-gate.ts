import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { headerProtocolVersion, protocolVersion } from "@connectrpc/connect/protocol-connect";
import { connectError, refusalFromUnknown } from "../../failure/connect.ts";
import { onBegunKey } from "./head-in-time.ts";

/**
 * Stands where Connect begins to serve a call, before it reads the body: interceptors run only when a request was read, so what
 * Connect refuses by itself passes by them. Each error that ends a call aborts the call's signal before it is written, and gets
 * its reason there.
 */
export function requestGate(context: HandlerContext): void {
  const { signal } = context;
  if (signal.aborted) throw refusalFromUnknown(signal.reason); // its time is over before it begins
  const explain = () => {
    if (signal.reason instanceof ConnectError) tellAccepted(context, refusalFromUnknown(signal.reason));
  };
  signal.addEventListener("abort", explain, { once: true });
  requireProtocolVersion(context);
  context.values.get(onBegunKey)(context);
}

/** The compressions that there are, beside the refusal of another: Connect leaves them out, as headers of a protocol (2.2). */
function tellAccepted({ responseHeader }: HandlerContext, { metadata }: ConnectError): void {
  for (const name of ["accept-encoding", "connect-accept-encoding", "grpc-accept-encoding"]) {
    const accepted = metadata.get(name);
    if (accepted !== null) responseHeader.set(name, accepted);
  }
}

/** Who speaks another version would take the answer for something else. Clients by hand may leave the header out. */
function requireProtocolVersion({ protocolName, requestHeader }: HandlerContext): void {
  const version = requestHeader.get(headerProtocolVersion) ?? protocolVersion;
  if (protocolName !== "connect" || version === protocolVersion) return;
  const text = `the header ${headerProtocolVersion} must be "${protocolVersion}", not ${JSON.stringify(version)}`;
  throw connectError("invalid_argument", text, { reason: "PROTOCOL_UNSUPPORTED" });
}
