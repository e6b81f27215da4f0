import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import {
  headerProtocolVersion,
  headerTimeout,
  parseContentType,
  parseTimeout,
  protocolVersion,
} from "@connectrpc/connect/protocol-connect";
import type { HttpRequest } from "../messages.ts";
import type { NodeHeaders } from "./reply.ts";

/** What a request in the Connect protocol says in its head. */
export interface RequestHead {
  readonly isStream: boolean;
  readonly isBinary: boolean;
  readonly timeoutMs: number | undefined;
  /** What the client takes its answers compressed by. */
  readonly compression: Compression | null;
}

/** Of a POST; undefined for other protocols, for compressed ones, and for what must be refused. */
export function readHead(request: HttpRequest, available: readonly Compression[]): RequestHead | undefined {
  const type = parseContentType(textOf(request, "content-type"));
  if (!type) return undefined;
  const prefix = type.stream ? "connect-" : "";
  const encoding = textOf(request, `${prefix}content-encoding`);
  const isCompressed = encoding !== null && encoding !== "identity";
  const isKnownVersion = (textOf(request, headerProtocolVersion) ?? protocolVersion) === protocolVersion;
  const timeout = parseTimeout(textOf(request, headerTimeout), Number.MAX_SAFE_INTEGER);
  if (timeout.error || timeout.timeoutMs === 0 || isCompressed || !isKnownVersion) return undefined;
  const accepted = `${prefix}accept-encoding`;
  const { response } = compressionNegotiate([...available], null, textOf(request, accepted), accepted);
  return { isStream: type.stream, isBinary: type.binary, timeoutMs: timeout.timeoutMs, compression: response };
}

function textOf(request: HttpRequest, name: string): string | null {
  const value = request.headers[name.toLowerCase()];
  return typeof value === "string" ? value : null;
}

/** The metadata of a request; the pseudo-headers of HTTP/2 are none. */
export function headerOf(request: HttpRequest): Headers {
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of Array.isArray(value) ? value : [value]) header.append(name, one);
  }
  return header;
}

export function urlOf(request: HttpRequest): string {
  const scheme = "encrypted" in request.socket && request.socket.encrypted ? "https" : "http";
  const authority = "authority" in request ? request.authority : request.headers.host;
  return `${scheme}://${authority}${request.url}`;
}

export function addFields(fields: NodeHeaders, metadata: Headers | undefined, prefix = ""): void {
  metadata?.forEach((value, key) => {
    const name = prefix + key;
    const known = fields[name];
    fields[name] = known === undefined ? value : [known, value].flat();
  });
}
