// A message of very many values, which would keep a process busy for a minute, or take all of its memory.

import { once } from "node:events";
import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import { maxValues } from "../../../schema/json/json-size.ts";
import { EnvelopeFlag } from "../../http/connect/envelope.ts";
import { openServer } from "../../http/testing/echo-server.ts";

/** The same field again and again, of which the last counts. */
const binary = (values: number) => Buffer.alloc(2 * values, Buffer.from([0x0a, 0x00]));
const json = (values: number) => Buffer.from(`[${"{},".repeat(values - 1)}0]`);

const { none, compressed } = EnvelopeFlag;
const enveloped = (bytes: Uint8Array) => encodeEnvelope(none, bytes);
const packed = (bytes: Uint8Array) => encodeEnvelope(compressed, gzipSync(bytes));

interface Form {
  readonly type: string;
  readonly method: string;
  readonly bodyOf: (values: number) => Uint8Array;
  readonly headers?: Record<string, string>;
}

const grpcGzip = { "grpc-encoding": "gzip" };
const forms: readonly Form[] = [
  { type: "application/proto", method: "Unary", bodyOf: binary },
  { type: "application/json", method: "Unary", bodyOf: json },
  { type: "application/connect+proto", method: "ServerStream", bodyOf: (n) => enveloped(binary(n)) },
  { type: "application/connect+json", method: "ServerStream", bodyOf: (n) => enveloped(json(n)) },
  { type: "application/connect+proto", method: "ClientStream", bodyOf: (n) => enveloped(binary(n)) },
  { type: "application/connect+json", method: "Bidi", bodyOf: (n) => enveloped(json(n)) },
  { type: "application/grpc", method: "Unary", bodyOf: (n) => enveloped(binary(n)) },
  { type: "application/grpc+json", method: "Bidi", bodyOf: (n) => enveloped(json(n)) },
  { type: "application/grpc-web+proto", method: "Unary", bodyOf: (n) => enveloped(binary(n)) },
  { type: "application/grpc-web+json", method: "ServerStream", bodyOf: (n) => enveloped(json(n)) },
  // values that are all the same would be refused as a bomb
  { type: "application/grpc", method: "Unary", bodyOf: (n) => packed(varied(n)), headers: grpcGzip },
  { type: "application/grpc", method: "ClientStream", bodyOf: (n) => packed(varied(n)), headers: grpcGzip },
  {
    type: "application/proto",
    method: "Unary",
    bodyOf: (n) => gzipSync(varied(n)),
    headers: { "content-encoding": "gzip" },
  },
];

/** Values with something in them. */
function varied(values: number): Uint8Array {
  const bytes = Buffer.alloc(4 * values);
  for (let at = 0, state = 1; at < bytes.length; at += 4) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    bytes.set([0x0a, 0x02, (state >> 8) & 0xff, (state >> 16) & 0xff], at);
  }
  return bytes;
}

async function answerTo(url: string, { type, method, bodyOf, headers }: Form, values: number): Promise<string> {
  const session = connect(url);
  try {
    const path = `/toolbus.echo.v1.EchoService/${method}`;
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, ...headers });
    let trailers = {};
    stream.on("trailers", (fields) => {
      trailers = fields;
    });
    stream.end(bodyOf(values));
    const [head] = await once(stream, "response");
    const body = Buffer.concat(await stream.toArray()).toString("latin1");
    return (JSON.stringify({ head, trailers }) + body).replaceAll("%20", " ").replaceAll("%3A", ":");
  } finally {
    session.close();
  }
}

const refusal = `the message has more than ${maxValues} values: send it in parts`;

const named = forms.map((form) => ({ form, name: `${form.type} to ${form.method}${form.headers ? ", packed" : ""}` }));

test.each(named)("SEC-5 in $name is refused before it is parsed", async ({ form }) => {
  const { url } = await openServer();
  expect(await answerTo(url, form, maxValues + 1)).toContain(refusal);
  expect(await answerTo(url, form, maxValues - 1)).not.toContain(refusal);
});
