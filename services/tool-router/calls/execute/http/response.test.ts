import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttpExecution } from "../../../testing/http-execution.ts";
import { openWebServer, type WebServer } from "../../../testing/peers/web-server.ts";

interface Row {
  what: string;
  status?: number;
  headers?: Record<string, string>;
  body: string | Buffer;
  /** The answer, or what its error says. */
  answer?: unknown;
  error?: RegExp;
}

const json = { "content-type": "application/json" };
const zeros = Buffer.alloc(10_000_000);
const encoded = (encoding: string, type = "application/json") => ({
  "content-encoding": encoding,
  "content-type": type,
});

const rows: Row[] = [
  { what: "JSON", headers: json, body: '{"a":1}', answer: { a: 1 } },
  { what: "JSON by another name", headers: { "content-type": "application/problem+json" }, body: "7", answer: 7 },
  {
    what: "JSON that is none",
    headers: json,
    body: "<html>",
    error: /called application\/json and is no JSON: <html>/,
  },
  { what: "JSON without a type", body: '"x"', answer: "x" },
  {
    what: "an object that is called text",
    headers: { "content-type": "text/plain" },
    body: '{"a":1}',
    answer: { a: 1 },
  },
  { what: "a number that is called text", headers: { "content-type": "text/plain" }, body: "007", answer: "007" },
  { what: "text", body: "hello", answer: "hello" },
  { what: "nothing", status: 204, body: "", answer: null },
  {
    what: "text of another charset",
    headers: { "content-type": "text/plain; charset=ISO-8859-1" },
    body: Buffer.from("läs", "latin1"),
    answer: "läs",
  },
  {
    what: "text of no charset that there is",
    headers: { "content-type": "text/plain; charset=klingon" },
    body: "läs",
    answer: "läs",
  },
  {
    what: "an image",
    headers: { "content-type": "image/png" },
    body: Buffer.from([0x89, 0x50]),
    answer: { contentType: "image/png", base64: "iVA=" },
  },
  {
    what: "bytes without a type",
    body: Buffer.from([0xff, 0xfe]),
    answer: { contentType: "application/octet-stream", base64: "//4=" },
  },
  {
    what: "text that its server knows no type of",
    headers: { "content-type": "application/octet-stream" },
    body: "lä;2",
    answer: "lä;2",
  },
  {
    what: "bytes that happen to be UTF-8",
    headers: { "content-type": "application/x-protobuf" },
    body: Buffer.from([10, 2, 104, 105, 16, 1]),
    answer: { contentType: "application/x-protobuf", base64: "CgJoaRAB" },
  },
  { what: "gzip", headers: encoded("gzip"), body: gzipSync('{"a":1}'), answer: { a: 1 } },
  { what: "brotli", headers: encoded("br"), body: brotliCompressSync('{"a":1}'), answer: { a: 1 } },
  { what: "deflate", headers: encoded("deflate"), body: deflateSync('{"a":1}'), answer: { a: 1 } },
  { what: "zstd", headers: encoded("zstd"), body: zstdCompressSync('{"a":1}'), answer: { a: 1 } },
  { what: "an unknown encoding", headers: encoded("lzw"), body: "x", error: /encoded as lzw/ },
  { what: "gzip within gzip", headers: encoded("gzip, gzip"), body: gzipSync(gzipSync("1")), error: /gzip, gzip/ },
  { what: "gzip that is none", headers: encoded("gzip"), body: "plain", error: /incorrect header check/ },
  {
    what: "gzip that breaks off",
    headers: encoded("gzip"),
    body: gzipSync('{"a":1}').subarray(0, 15),
    error: /end of file/,
  },
  { what: "a gzip bomb", headers: encoded("gzip"), body: gzipSync(zeros), error: /larger than 50000 bytes/ },
  { what: "a brotli bomb", headers: encoded("br"), body: brotliCompressSync(zeros), error: /larger than 50000 bytes/ },
  {
    what: "gzip that unpacks to nothing for ever",
    headers: encoded("gzip"),
    body: Buffer.concat(Array.from({ length: 5_000 }, () => gzipSync(""))),
    error: /packed response is larger than 50000 bytes/,
  },
  { what: "a large body", body: "x".repeat(100_000), error: /the response is larger than 50000 bytes/ },
  { what: "a bad status", status: 404, body: "no such thing", error: /^HTTP 404: no such thing$/ },
  { what: "a bad status with a large body", status: 503, body: "x".repeat(100_000), error: /^HTTP 503: x{2000}$/ },
  {
    what: "a bad status with a bomb",
    status: 500,
    headers: encoded("gzip", "text/html"),
    body: gzipSync(zeros),
    error: /^HTTP 500: /,
  },
  {
    what: "a bad status that cannot be read",
    status: 500,
    headers: encoded("gzip"),
    body: "x",
    error: /^HTTP 500, and its body cannot be read: /,
  },
  {
    what: "a bad status with an image",
    status: 400,
    headers: { "content-type": "image/png" },
    body: Buffer.from([0x89, 0x50]),
    error: /^HTTP 400: a body that is no text$/,
  },
  {
    what: "a bad status that says when to come again",
    status: 429,
    headers: { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" },
    body: "slow down",
    error: /^HTTP 429 \(Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\): slow down$/,
  },
  {
    what: "a bad status whose text is cut within a character",
    status: 400,
    headers: { "content-type": "application/octet-stream" },
    body: `x${"ä".repeat(5_000)}`,
    error: /^HTTP 400: xä{1999}$/,
  },
  {
    what: "a bad status that says it at length",
    status: 503,
    headers: { "retry-after": "7".repeat(9_000) },
    body: "later",
    error: /^HTTP 503 \(Retry-After: 7{1,100}\): later$/,
  },
  { what: "a redirect that says nothing of where", status: 302, body: "somewhere", error: /^HTTP 302: somewhere$/ },
];

const stack = new AsyncDisposableStack();
let server: WebServer;
let http: ReturnType<typeof openTestHttpExecution>;
beforeAll(async () => {
  server = stack.use(
    await openWebServer(({ url = "" }, response) => {
      const { status = 200, headers = {}, body } = rows[Number(url.slice(1))]!;
      response.writeHead(status, headers).end(body);
    }),
  );
  http = stack.use(openTestHttpExecution({ allow: ["127.0.0.1/32"] }));
});
afterAll(() => stack.disposeAsync());

test.each(rows.map((row, index) => ({ ...row, index })))(
  "TOOL-3 a response: $what",
  async ({ index, answer, error }) => {
    const output = JSON.parse(await http.call(`http://127.0.0.1:${server.port}/${index}`)) as { error?: string };
    if (error === undefined) expect(output).toEqual(answer);
    else expect(output.error).toMatch(error);
  },
);

test("TOOL-3 a body that nobody reads to its end keeps no connection from the next call", async () => {
  const bomb = rows.findIndex(({ what }) => what === "a bad status with a large body");
  for (let n = 0; n < 70; n++) await http.call(`http://127.0.0.1:${server.port}/${bomb}`);
  expect(await http.call(`http://127.0.0.1:${server.port}/0`)).toBe('{"a":1}');
});
