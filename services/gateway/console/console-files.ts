/*
 * The console at `/`: files that are built once and served as they are. They hold nothing of anybody and need no key; all that the
 * page shows it asks for as every other client does.
 */

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { LoginSettings } from "#runtime/config/access/login-settings.ts";
import type { HttpRequest, HttpResponse, PathTaker } from "#runtime/rpc/http/messages.ts";
import { answerJson } from "../plain/exchange.ts";

const built = fileURLToPath(new URL("../../../gen/console/", import.meta.url));

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The page runs its own code only, talks to its own suite and where people log in, and is shown in no page of another. */
function policyFor(origins: readonly string[]): string {
  const connect = ["'self'", ...origins].join(" ");
  return `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src ${connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/** Where the page reads how people log in: an empty object where they need a key. */
const LOGIN_PATH = "/console/login.json";

interface ConsoleFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
}

/** Reads the files into memory: a suite that is upgraded under a running gateway changes nothing that this one serves. */
export async function readConsoleFiles(folder = built): Promise<ReadonlyMap<string, ConsoleFile>> {
  const names = (await readdir(folder)).filter((name) => types[extname(name)] !== undefined);
  const files = await Promise.all(names.map(async (name) => [pathOf(name), await readOne(folder, name)] as const));
  return new Map(files);
}

function pathOf(name: string): string {
  return name === "index.html" ? "/" : `/console/${name}`;
}

async function readOne(folder: string, name: string): Promise<ConsoleFile> {
  const bytes = await readFile(join(folder, name));
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { type: types[extname(name)] ?? "", bytes, gzipped: await promisify(gzip)(bytes), etag };
}

/** Gives whether the path is one of the console's. */
export function createConsolePaths(files: ReadonlyMap<string, ConsoleFile>, login?: LoginSettings): PathTaker {
  const policy = policyFor(login?.origins ?? []);
  const { origins: _, ...told } = login ?? {};
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const file = files.get(path);
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    if (file !== undefined) answerFile(request, response, file, policy);
    else if (path === LOGIN_PATH) answerJson(response, 200, told);
    else return false;
    return true;
  };
}

function answerFile(
  request: HttpRequest,
  response: HttpResponse,
  { type, bytes, gzipped, etag }: ConsoleFile,
  policy: string,
): void {
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
