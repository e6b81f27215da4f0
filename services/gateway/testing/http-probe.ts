// Requests as broken as a table wants them, which no client library would send, and the error in the answer of each protocol.

import { request as requestHttp1 } from "node:http";
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { buffer } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { endStreamFlag, endStreamFromJson, errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse } from "@connectrpc/connect/protocol-grpc-web";

export interface ProbeRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

export interface ProbeAnswer {
  status: number;
  headers: Headers;
  body: Buffer;
  trailers: Headers;
}

export type HttpVersion = "1.1" | "2";

export function send(url: string, version: HttpVersion, request: ProbeRequest): Promise<ProbeAnswer> {
  return version === "2" ? sendHttp2(url, request) : sendHttp1(url, request);
}

function sendHttp1(url: string, { method, path, headers, body }: ProbeRequest): Promise<ProbeAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = requestHttp1({ hostname, port, path, method, headers, agent: false }, async (response) => {
      const told = { status: response.statusCode ?? 0, headers: headersFrom(response.headers) };
      resolve({ ...told, body: await buffer(response), trailers: headersFrom(response.trailers) });
    });
    sent.on("error", reject).end(body);
  });
}

async function sendHttp2(url: string, { method, path, headers, body }: ProbeRequest): Promise<ProbeAnswer> {
  const session = connect(url);
  try {
    const stream = session.request({ ":method": method, ":path": path, ...headers });
    const told = Promise.withResolvers<IncomingHttpHeaders & IncomingHttpStatusHeader>();
    let trailers = new Headers();
    stream.on("response", told.resolve);
    stream.on("trailers", (given) => {
      trailers = headersFrom(given);
    });
    stream.on("error", told.reject);
    stream.end(body);
    const given = await told.promise;
    return { status: given[":status"] ?? 0, headers: headersFrom(given), body: await buffer(stream), trailers };
  } finally {
    session.close();
  }
}

function headersFrom(given: NodeJS.Dict<string | string[] | number>): Headers {
  const entries = Object.entries(given).filter(([name]) => !name.startsWith(":"));
  return new Headers(entries.map(([name, value]) => [name, String(value)]));
}

/** The error that the protocol of the answer's content type tells; undefined where it tells of none. */
export function errorOf({ status, headers, body, trailers }: ProbeAnswer): ConnectError | undefined {
  const type = headers.get("content-type") ?? "";
  if (/^application\/grpc-web/.test(type)) return findTrailerError(trailerParse(lastOf(body, trailerFlag)));
  if (/^application\/grpc/.test(type)) return findTrailerError(trailers);
  if (/^application\/connect\+/.test(type)) return endStreamFromJson(lastOf(body, endStreamFlag)).error;
  if (status === 200) return undefined;
  return errorFromJsonBytes(body, undefined, new ConnectError(`HTTP ${status} without an error in it`, Code.Unknown));
}

function lastOf(body: Buffer, flag: number): Uint8Array {
  for (let at = 0; at + 5 <= body.length; at += 5 + body.readUInt32BE(at + 1)) {
    if (body[at] === flag) return body.subarray(at + 5);
  }
  throw new Error(`the answer ends without an envelope of flag ${flag}: ${body.toString("latin1")}`);
}

/** What a protocol calls the parts of a request. */
export interface Protocol {
  json: string;
  binary: string;
  encoding: string;
  timeout: string;
  method: "ListAgents" | "WatchAgents";
  /** Whether messages stand in envelopes. */
  isEnveloped: boolean;
}

const grpc = {
  json: "application/grpc+json",
  binary: "application/grpc",
  encoding: "grpc-encoding",
  timeout: "grpc-timeout",
};
const web = { ...grpc, json: "application/grpc-web+json", binary: "application/grpc-web+proto" };
const connectTimeout = "connect-timeout-ms";

export const protocols = {
  Connect: {
    json: "application/json",
    binary: "application/proto",
    encoding: "content-encoding",
    timeout: connectTimeout,
    method: "ListAgents",
    isEnveloped: false,
  },
  "a stream of Connect": {
    json: "application/connect+json",
    binary: "application/connect+proto",
    encoding: "connect-content-encoding",
    timeout: connectTimeout,
    method: "WatchAgents",
    isEnveloped: true,
  },
  gRPC: { ...grpc, method: "ListAgents", isEnveloped: true },
  "a stream of gRPC": { ...grpc, method: "WatchAgents", isEnveloped: true },
  "gRPC-Web": { ...web, method: "ListAgents", isEnveloped: true },
  "a stream of gRPC-Web": { ...web, method: "WatchAgents", isEnveloped: true },
} satisfies Record<string, Protocol>;

/** A message in the form of the protocol. */
export function framed({ isEnveloped }: Protocol, message: string | Uint8Array, flags = 0): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(message));
  return isEnveloped ? encodeEnvelope(flags, bytes) : bytes;
}
