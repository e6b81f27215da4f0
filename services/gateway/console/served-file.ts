import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";

/** A file as browsers are given it. */
export interface ServedFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
}

export const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export async function servedFile(type: string, bytes: Buffer): Promise<ServedFile> {
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { type, bytes, gzipped: await promisify(gzip)(bytes), etag };
}

/** Answers with the file, or that it is the same as the browser has: it asks each time, so that a change shows at once. */
export function answerFile(request: HttpRequest, response: HttpResponse, file: ServedFile, policy: string): void {
  const { type, bytes, gzipped, etag } = file;
  const headers = {
    "cache-control": "no-cache",
    etag,
    vary: "accept-encoding",
    "content-security-policy": policy,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
  };
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (request.headers["if-none-match"] === etag) {
    response.statusCode = 304;
    response.end();
    return;
  }
  const isZipped = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  const body = isZipped ? gzipped : bytes;
  if (isZipped) response.setHeader("content-encoding", "gzip");
  response.setHeader("content-type", type);
  response.setHeader("content-length", `${body.length}`);
  if (request.method === "HEAD") response.end();
  else response.end(body);
}
