// Errors, as the wire has them: docs/connect-over-nats/README.md, "Errors".

import { Buffer } from "node:buffer";

export type Delivery = "NOT_SENT" | "UNKNOWN";

export interface Detail {
  readonly type: string;
  readonly value: Uint8Array;
}

export interface ErrorTraits {
  readonly details?: readonly Detail[];
  readonly metadata?: Headers;
  readonly delivery?: Delivery | undefined;
}

export class PeerError extends Error {
  readonly code: string;
  readonly text: string;
  readonly details: readonly Detail[];
  readonly metadata: Headers;
  readonly delivery: Delivery | undefined;

  constructor(code: string, text: string, { details = [], metadata = new Headers(), delivery }: ErrorTraits = {}) {
    super(`${code}: ${text}`);
    this.code = code;
    this.text = text;
    this.details = details;
    this.metadata = metadata;
    this.delivery = delivery;
  }
}

export function toPeerError(reason: unknown): PeerError {
  return reason instanceof PeerError ? reason : new PeerError("unknown", String(reason));
}

export function encodeError(error: PeerError): Uint8Array {
  const details = error.details.map(({ type, value }) => ({ type, value: Buffer.from(value).toString("base64") }));
  return Buffer.from(JSON.stringify({ code: error.code, message: error.text, ...(details.length > 0 && { details }) }));
}

interface WireError {
  code?: string;
  message?: string;
  details?: { type: string; value: string }[];
}

export function decodeError(body: Uint8Array, traits: ErrorTraits): PeerError {
  const { code = "unknown", message = "", details = [] } = parseJson(body);
  const found = details.map(({ type, value }) => ({ type, value: new Uint8Array(Buffer.from(value, "base64")) }));
  return new PeerError(code, message, { ...traits, details: found });
}

function parseJson(body: Uint8Array): WireError {
  try {
    return JSON.parse(Buffer.from(body).toString()) as WireError;
  } catch {
    return { code: "unknown", message: "an error that cannot be read" };
  }
}

export const tooLarge = (delivery?: Delivery) =>
  new PeerError("resource_exhausted", "a message may have 64 MiB at most", { delivery });
