import type { ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { callThrough, oddServerIn, openConnection } from "../../testing/connection.ts";
import { listen } from "../../testing/servers/http-server.ts";

const everything = new URL(
  "../../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
  import.meta.url,
).pathname;

/** What the odd server answers to a call: the rest of the message after its id, as it stands. */
async function answered(rest: string) {
  await using connection = openConnection(oddServerIn());
  return await callThrough(connection, "raw", { rest }, { deadlineMs: Date.now() + 8_000 });
}

/** What comes of a call of a server over HTTP that answers it so. */
async function calledOverHttp(answer: (response: ServerResponse, id: unknown) => void) {
  await using server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const asked = JSON.parse(await text(request));
    if (asked.id === undefined) return response.writeHead(202).end();
    const info = { capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } };
    const answers: Record<string, string> = {
      initialize: `"result":${JSON.stringify({ protocolVersion: "2025-11-25", ...info })}`,
      "tools/list": '"result":{"tools":[{"name":"raw","inputSchema":{"type":"object"}}]}',
    };
    if (asked.method === "tools/call") return answer(response, asked.id);
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(messageOf(asked.id, answers[asked.method] ?? '"error":{"code":-32601,"message":"no"}'));
  });
  await using connection = openConnection({ name: "odd", url: server.url });
  return await callThrough(connection, "raw", {}, { deadlineMs: Date.now() + 8_000 });
}

const messageOf = (id: unknown, rest: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${rest}}`;

/** What the same server answers over HTTP, in two pieces of its body. */
function answeredOverHttp(type: string, rest: string) {
  return calledOverHttp((response, id) => {
    const message = messageOf(id, rest);
    const body = Buffer.from(
      type === "application/json" ? message : `id: 12345678901234567890\r\ndata: ${message}\r\n\r\n`,
    );
    response.writeHead(200, { "content-type": type });
    response.write(body.subarray(0, body.length / 2)); // amid a number, or a string
    response.end(body.subarray(body.length / 2));
  });
}

const types = ["application/json", "text/event-stream"];

const blocksOf = ({ result }: Awaited<ReturnType<typeof answered>>) =>
  result?.content.map(({ blockJson, data }) => ({ ...JSON.parse(blockJson), bytes: data.length })) ?? [];

describe("an answer to a call", () => {
  test("keeps what stands beside structured content, and what the server says about the answer", async () => {
    const told = await answered(
      '"result":{"structuredContent":{"answer":42},"content":[{"type":"text","text":"other"},{"type":"image","data":"AAAA","mimeType":"image/png","annotations":{"audience":["user"]}}],"_meta":{"cost":3}}',
    );
    expect(told.output).toEqual({ answer: 42 });
    expect(blocksOf(told)).toEqual([
      { type: "text", text: "other", bytes: 0 },
      { type: "image", mimeType: "image/png", annotations: { audience: ["user"] }, bytes: 3 },
    ]);
    expect(JSON.parse(told.result?.metaJson ?? "")).toEqual({ cost: 3 });
  });

  test("does not say twice what its text says of the structured content", async () => {
    const told = await answered(
      '"result":{"structuredContent":{"a":[1,2]},"content":[{"type":"text","text":"{\\n \\"a\\": [1, 2]}"}]}',
    );
    expect(told.output).toEqual({ a: [1, 2] });
    expect(told.result).toMatchObject({ content: [], metaJson: "" });
  });

  test.each([
    ["isError null", '"result":{"isError":null,"content":[{"type":"text","text":"well"}]}', "well"],
    ["annotations null", '"result":{"content":[{"type":"text","text":"well","annotations":null}]}', "well"],
    ["error null beside a result", '"error":null,"result":{"content":[{"type":"text","text":"well"}]}', "well"],
    ["structuredContent null", '"result":{"structuredContent":null,"content":[{"type":"text","text":"well"}]}', "well"],
    ["another version", '"jsonrpc":null,"result":{"content":[{"type":"text","text":"well"}]}', "well"],
    ["_meta null", '"result":{"_meta":null,"content":[{"type":"text","text":"well"}]}', "well"],
    ["content null", '"result":{"content":null,"structuredContent":{"a":1}}', { a: 1 }],
    ["no content", '"result":{}', ""],
    ["a text alone", '"result":{"content":"well"}', "well"],
  ])("is taken where it is odd but harmless: %s", async (_, rest, output) => {
    const overHttp = types.map((type) => answeredOverHttp(type, rest));
    for (const told of await Promise.all([answered(rest), ...overHttp])) {
      expect(told.result?.isError).toBe(false);
      expect(told.output).toEqual(output);
    }
  });

  test("that is nested too deeply to be passed on is an error that says so", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    const { result, output } = await answered(`"result":{"structuredContent":{"deep":${deep}}}`);
    expect(result?.isError).toBe(true);
    expect(output).toEqual({ error: "the server's answer cannot be used: it is nested too deeply" });
  });

  test.each([
    ['{"code":"E1","message":"no cheese"}', "no cheese"],
    ['{"message":"no cheese"}', "no cheese"],
    ['{"code":1e300,"message":"no cheese"}', "no cheese"],
    ["{}", "the server says that it failed, and not why"],
  ])("that is an error of another form, %s, ends its call at once", async (error, told) => {
    const overHttp = types.map((type) => answeredOverHttp(type, `"error":${error}`));
    for (const { result, output } of await Promise.all([answered(`"error":${error}`), ...overHttp])) {
      expect(result?.isError).toBe(true);
      expect(output).toEqual({ error: told });
    }
  });

  test("of an unknown type of content is kept as it is", async () => {
    const told = await answered('"result":{"content":[{"type":"hologram","depth":3},{"type":"text","text":"see"}]}');
    expect(told.output).toEqual({
      content: [
        { type: "hologram", depth: 3 },
        { type: "text", text: "see" },
      ],
    });
    expect(blocksOf(told)).toMatchObject([{ type: "hologram", depth: 3 }, { type: "text" }]);
  });

  test.each([
    ["a result that is no object", '"result":"done"', /no object/],
    ["neither result nor error", '"other":1', /neither/],
    ["no JSON", '"result":{"structuredContent":{"x":NaN},"content":[]}', /no JSON/],
  ])("that cannot be read is an error of its call with the reason, at once: %s", async (_, rest, reason) => {
    const startedAt = tickedMs();
    const overHttp = types.map((type) => answeredOverHttp(type, rest));
    for (const told of await Promise.all([answered(rest), ...overHttp])) {
      expect(told.result?.isError).toBe(true);
      expect(told.result?.outputJson).toMatch(reason);
    }
    expect(tickedMs() - startedAt).toBeLessThan(4_000);
  });

  test("keeps the digits of its numbers, as arguments do", async () => {
    const numbers = '{"id":9007199254740993,"small":0.1234567890123456789,"plain":1.5,"huge":1e400}';
    const told = await answered(`"result":{"structuredContent":${numbers},"content":[]}`);
    expect(told.result?.outputJson).toBe(numbers);
    await using connection = openConnection({ name: "all", command: process.execPath, args: [everything] });
    const echoed = await callThrough(connection, "echo", undefined, {
      argumentsJson: '{"message":"9007199254740993"}',
    });
    expect(echoed.output).toBe("Echo: 9007199254740993");
  });

  test.each(types)("keeps the digits of its numbers over HTTP as %s", async (type) => {
    const numbers = '{"id":9007199254740993,"text":"say \\"1e400\\"","small":0.1234567890123456789,"huge":1e400}';
    const told = await answeredOverHttp(type, `"result":{"structuredContent":${numbers},"content":[]}`);
    expect(told.result?.outputJson).toBe(numbers);
  });

  test("LOOP-14 is told to be none, at once, where a server over HTTP accepts the call and says no more", async () => {
    const startedAt = tickedMs();
    await expect(calledOverHttp((response) => response.writeHead(202).end())).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      message: "the outcome of @odd/raw is unknown: the server answered tools/call with HTTP 202, and nothing else",
    });
    expect(tickedMs() - startedAt).toBeLessThan(4_000);
  });

  test.each([0, 2 ** 20])("LOOP-14 by HTTP 421, and %i bytes, says that nothing was started", async (size) => {
    const answer = (response: ServerResponse) => response.writeHead(421).end("x".repeat(size));
    await expect(calledOverHttp(answer)).rejects.toMatchObject({ reason: "MCP_SERVER_UNAVAILABLE" });
  });

  test("of server-everything comes in each of its forms", async () => {
    await using connection = openConnection({ name: "all", command: process.execPath, args: [everything] });
    const image = await callThrough(connection, "get-tiny-image");
    expect(blocksOf(image).map(({ type }) => type)).toEqual(["text", "image", "text"]);
    expect(blocksOf(image)[1]).toMatchObject({ mimeType: "image/png", bytes: expect.any(Number) });
    expect(blocksOf(image)[1].bytes).toBeGreaterThan(1_000);
    expect(image.result?.outputJson).not.toContain("iVBOR");
    const links = await callThrough(connection, "get-resource-links", { count: 2 });
    expect(blocksOf(links).map(({ type }) => type)).toEqual(["text", "resource_link", "resource_link"]);
    const resource = await callThrough(connection, "get-resource-reference", { resourceType: "Blob", resourceId: 1 });
    const [embedded] = blocksOf(resource).filter(({ type }) => type === "resource");
    expect(embedded.resource).not.toHaveProperty("blob");
    expect(embedded.bytes).toBeGreaterThan(0);
    const structured = await callThrough(connection, "get-structured-content", { location: "New York" });
    expect(structured.output).toHaveProperty("temperature");
  });
});
