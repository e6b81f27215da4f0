// What the cases say of bodies and headers: as bytes to send, and as what has to come.

import { createHash } from "node:crypto";
import { patterned, textOf } from "../../../examples/wire-conformance/subject/protocol.ts";
import type { Body, HeaderValue, HeaderValues } from "./case-file.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const valueTag = 0x0a;

/** A `google.protobuf.BytesValue` as protobuf has it. */
function bytesValue(value: Uint8Array): Buffer {
  if (value.length === 0) return Buffer.alloc(0);
  const length: number[] = [];
  for (let rest = value.length; ; rest = Math.floor(rest / 128)) {
    length.push(rest >= 128 ? (rest % 128) + 128 : rest);
    if (rest < 128) return Buffer.concat([Buffer.from([valueTag, ...length]), value]);
  }
}

/** The bytes that a body stands for. */
export function bytesOf(body: Body | undefined): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  if (typeof body === "string") return Buffer.from(body, "hex");
  if ("value" in body) return bytesValue(Buffer.from(body.value, "hex"));
  if ("value_of" in body) return bytesValue(patterned(body.value_of)).subarray(body.from ?? 0, body.to);
  if ("zeros" in body) return Buffer.alloc(body.zeros);
  if ("credit" in body) return creditBytes(body.credit);
  if ("error" in body) return Buffer.from(JSON.stringify({ code: body.error.code, message: body.error.says ?? "" }));
  throw new Error(`this body can only be expected: ${JSON.stringify(body)}`);
}

function creditBytes([messages, bytes]: [number, number]): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt32BE(messages, 0);
  body.writeUInt32BE(bytes, 4);
  return body;
}

/** How a client tells of a value: by its digest, when it is large. */
export function toldAs(body: { value: string } | { value_of: number }): string {
  return textOf("value" in body ? Buffer.from(body.value, "hex") : patterned(body.value_of));
}

/** What is wrong with the bytes that came, or undefined. */
export function bodyFault(expected: Body | undefined, came: Uint8Array): string | undefined {
  if (expected === undefined) return undefined;
  if (typeof expected === "object" && "credit_at_least" in expected) return creditFault(expected.credit_at_least, came);
  if (typeof expected === "object" && "error" in expected) return errorFault(expected.error, came);
  const bytes = bytesOf(expected);
  return bytes.equals(came) ? undefined : `the body is ${shortened(came)} and not ${shortened(bytes)}`;
}

function shortened(bytes: Uint8Array): string {
  if (bytes.length <= 32) return `"${hex(bytes)}"`;
  return `${bytes.length} bytes (${createHash("sha256").update(bytes).digest("hex").slice(0, 8)})`;
}

function creditFault([messages, bytes]: [number, number], came: Uint8Array): string | undefined {
  if (came.length !== 8) return "the credit has not 8 bytes";
  const view = new DataView(came.buffer, came.byteOffset, 8);
  const granted = [view.getUint32(0), view.getUint32(4)] as const;
  return granted[0] >= messages && granted[1] >= bytes ? undefined : `the credit is only ${granted.join(" ")}`;
}

type ErrorBody = Extract<Body, { error: unknown }>["error"];

function errorFault(expected: ErrorBody, came: Uint8Array): string | undefined {
  const text = Buffer.from(came).toString();
  const found = JSON.parse(text) as { code?: string; message?: string; details?: { type: string; value: string }[] };
  const details = (found.details ?? [])
    .filter(({ type }) => type === "google.protobuf.BytesValue")
    .map(({ value }) => Buffer.from(value, "base64").toString("hex"));
  if (found.code !== expected.code) return `the error is ${text.slice(0, 200)} and not ${expected.code}`;
  if (expected.says && !found.message?.includes(expected.says)) return `"${found.message}" says no "${expected.says}"`;
  if (expected.details && expected.details.join() !== details.join())
    return `the details are ${details.join() || "none"}`;
  return undefined;
}

/** Header lines for what is sent; null leaves one out. */
export function headerLines(headers: Readonly<Record<string, HeaderValue>>): [string, string][] {
  return Object.entries(headers).flatMap(([key, value]): [string, string][] => {
    if (value === null) return [];
    if (Array.isArray(value)) return value.map((each) => [key, each]);
    if (typeof value === "string") return [[key, value]];
    if ("now" in value) return [[key, String(Date.now() + value.now)]];
    throw new Error(`this header can only be expected: ${key}`);
  });
}

/** What is wrong with the headers that came, or undefined; what is not named may be there. */
export function headersFault(
  expected: HeaderValues | undefined,
  came: ReadonlyMap<string, readonly string[]> | undefined,
): string | undefined {
  if (expected === undefined) return undefined;
  if (expected === "none") return came ? `there are headers: ${[...came.keys()].join(", ")}` : undefined;
  for (const [key, value] of Object.entries(expected)) {
    const found = came?.get(key)?.join(", ");
    if (!isHeader(value, found)) return `the header ${key} is ${found ?? "missing"} and not ${JSON.stringify(value)}`;
  }
  return undefined;
}

function isHeader(expected: HeaderValue, found: string | undefined): boolean {
  if (expected === null) return found === undefined;
  if (found === undefined) return false;
  if (Array.isArray(expected)) return found === expected.join(", ");
  if (typeof expected === "string") return found === expected;
  if (!/^\d{1,15}$/.test(found)) return false;
  if ("at_most" in expected) return Number(found) <= expected.at_most;
  const differs = Number(found) - Date.now() - expected.now;
  return Math.abs(differs) <= (expected.give ?? 1_500);
}
