// Requests as broken as a table wants them, which no client library would send, and the error in the answer of each protocol.

import { request as requestHttp1 } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
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

/** A request that is sent piece by piece. */
export interface OpenRequest extends Disposable {
  write(bytes: Uint8Array): void;
  end(bytes?: Uint8Array): void;
  readonly answer: Promise<ProbeAnswer>;
  /** Settles when the server keeps nothing of it any more. */
  readonly closed: Promise<void>;
}

/** Sends the head of a request and nothing of its body. */
export function open(url: string, version: HttpVersion, request: Omit<ProbeRequest, "body">): OpenRequest {
  return version === "2" ? openHttp2(url, request) : openHttp1(url, request);
}

export async function send(url: string, version: HttpVersion, { body, ...head }: ProbeRequest): Promise<ProbeAnswer> {
  using request = open(url, version, head);
  request.end(body);
  return await request.answer;
}

function openHttp1(url: string, { method, path, headers }: Omit<ProbeRequest, "body">): OpenRequest {
  const { hostname, port } = new URL(url);
  const sent = requestHttp1({ hostname, port, path, method, headers, agent: false });
  const answer = new Promise<ProbeAnswer>((resolve, reject) => {
    sent.on("error", reject).on("response", async (response) => {
      const told = { status: response.statusCode ?? 0, headers: headersFrom(response.headers) };
      resolve({ ...told, body: await buffer(response), trailers: headersFrom(response.trailers) });
    });
  });
  return {
    write: (bytes) => void sent.write(bytes),
    end: (bytes) => void sent.end(bytes),
    answer,
    closed: new Promise((resolve) => sent.once("socket", (socket) => socket.once("close", () => resolve()))),
    [Symbol.dispose]: () => void sent.destroy(),
  };
}

function openHttp2(url: string, request: Omit<ProbeRequest, "body">): OpenRequest {
  const session = connect(url);
  session.on("error", () => {}); // its streams tell
  const opened = openStream(session, request);
  return { ...opened, [Symbol.dispose]: () => session.destroy() };
}

/** On a connection that others may share. */
export function openStream(session: ClientHttp2Session, { method, path, headers }: Omit<ProbeRequest, "body">) {
  const stream = session.request({ ":method": method, ":path": path, ...headers });
  const answer = new Promise<ProbeAnswer>((resolve, reject) => {
    let trailers = new Headers();
    stream.on("trailers", (given) => {
      trailers = headersFrom(given);
    });
    stream.on("error", reject).on("response", async (given) => {
      const body = await buffer(stream).catch(() => Buffer.alloc(0));
      resolve({ status: given[":status"] ?? 0, headers: headersFrom(given), body, trailers });
    });
  });
  answer.catch(() => {}); // told to whoever waits
  return {
    write: (bytes: Uint8Array) => void stream.write(bytes),
    end: (bytes?: Uint8Array) => void stream.end(bytes),
    reset: () => stream.close(constants.NGHTTP2_CANCEL),
    answer,
    closed: new Promise<void>((resolve) => stream.once("close", () => resolve())),
  };
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
