// Requests that nobody would write: half of each is what a client sends.

import { once } from "node:events";
import { connect } from "node:net";
import { type ProbeRequest, protocols, send } from "../../../../services/gateway/testing/http-probe.ts";
import { createRandom, type Random } from "../../../faults/random.ts";
import type { Attack, Ground, PlayOptions } from "../../attack.ts";
import { offered } from "../doors/methods.ts";

const bytesFrom = (random: Random, most: number) =>
  Uint8Array.from({ length: Math.floor(random.next() * most) }, () => Math.floor(random.next() * 256));
const textFrom = (random: Random, most: number) => Buffer.from(bytesFrom(random, most)).toString("latin1");

const values = [
  "",
  "0",
  "-1",
  "1e9",
  "99999999999999999999",
  "gzip",
  "br",
  "identity",
  "chunked",
  "1",
  "*/*",
  "application/grpc",
  "../../..",
  "%00",
];

function headersFrom(random: Random, key: string): Record<string, string> {
  const known = [
    "content-type",
    "content-encoding",
    "connect-protocol-version",
    "connect-timeout-ms",
    "grpc-timeout",
    "grpc-encoding",
    "te",
    "origin",
    "accept-encoding",
    "traceparent",
    "cookie",
    "x-api-key",
    "authorization",
    "toolbus-principal",
    "range",
    "expect",
  ];
  const protocol = random.pick(Object.values(protocols));
  const odd = Array.from({ length: Math.floor(random.next() * 4) }, () => [random.pick(known), random.pick(values)]);
  const type = random.pick([protocol.json, protocol.binary]);
  return { "content-type": type, ...(random.next() < 0.8 && { "x-api-key": key }), ...Object.fromEntries(odd) };
}

function pathFrom(random: Random): string {
  const { parent, name } = random.pick(offered);
  const pieces = [
    `/${parent.typeName}/${name}`,
    "/api/tool-calls",
    "/api/runs/r/tool-results",
    "/metrics",
    "/healthz",
    "//",
    "/..%2f",
    "/%",
  ];
  const odd = encodeURI(textFrom(random, 30)).replaceAll(" ", "");
  return random.next() < 0.7 ? pieces[0]! : `${random.pick(pieces)}${odd}`;
}

function bodyFrom(random: Random): Uint8Array {
  const json = [
    "{}",
    "[]",
    "null",
    "{",
    `{"a":${"[".repeat(3_000)}`,
    '{"sessionId":"*"}',
    '{"pageSize":-1}',
    '{"sessionId":{"a":1}}',
  ];
  if (random.next() < 0.4) return new TextEncoder().encode(random.pick(json));
  const raw = bytesFrom(random, 400);
  const framed = Buffer.concat([
    Buffer.from([Math.floor(random.next() * 4), 0, 0, Math.floor(random.next() * 3), raw.length & 255]),
    raw,
  ]);
  return random.next() < 0.5 ? framed : raw;
}

/** Says when the answer is one that nobody may be given. */
async function sendOdd({ url, keys }: Ground, random: Random): Promise<string | undefined> {
  const method = random.pick(["POST", "POST", "POST", "GET", "PUT", "OPTIONS", "DELETE", "HEAD"]);
  const request: ProbeRequest = {
    method,
    path: pathFrom(random),
    headers: headersFrom(random, keys.mallory),
    body: bodyFrom(random),
  };
  const version = random.pick(["1.1", "2"] as const);
  const answer = await Promise.race([
    send(url, version, request).catch(() => undefined), // refused by the client's own library, or cut off
    new Promise<"late">((resolve) => setTimeout(resolve, 20_000, "late")),
  ]);
  const what = `${version} ${method} ${request.path} ${JSON.stringify(request.headers)}`;
  if (answer === "late" && !/Watch|CallTool|ReadResult|tool-calls/.test(request.path)) return `${what} had no answer`;
  if (answer === "late" || answer === undefined) return undefined;
  const text = `${answer.body.toString("latin1")} ${[...answer.trailers.values()].join()}`;
  const isFault = answer.status === 500 || /"code":"(internal|unknown)"|REASON_INTERNAL/.test(text);
  return isFault ? `${what}: HTTP ${answer.status} ${text.slice(0, 200)}` : undefined;
}

/** Bytes that are no HTTP, or stop being some. */
async function sendNoise({ url }: Ground, random: Random): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  const beginnings = ["", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/1.1\r\nhost: x\r\n", "GET ", "\x16\x03\x01"];
  socket.end(random.pick(beginnings) + textFrom(random, 2_000), "latin1");
  socket.resume();
  await Promise.race([once(socket, "close"), new Promise((resolve) => setTimeout(resolve, 1_000))]);
  socket.destroy();
}

async function play(ground: Ground, { isShort, seed }: PlayOptions) {
  const random = createRandom(seed);
  const endsAt = performance.now() + (isShort ? 3_000 : 60_000);
  const reached = new Set<string>();
  let tries = 0;
  const go = async () => {
    while (performance.now() < endsAt && reached.size < 20) {
      tries += 1;
      if (random.next() < 0.1) await sendNoise(ground, random);
      else {
        const got = await sendOdd(ground, random);
        if (got !== undefined) reached.add(got);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, go));
  return { tries, reached: [...reached] };
}

export const fuzz: readonly Attack[] = [
  { name: "requests at random: paths, heads, bodies, and bytes that are no request", requirement: "SEC-5", play },
];
