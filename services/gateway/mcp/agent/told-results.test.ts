// A call that has its result is told by it, whatever else cannot be read by then: who is told a fault makes the call again.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import type { CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { callTool, openTestDoor, postMessage } from "../http/testing/door.ts";

type Result = MessageInitShape<typeof CallToolResultSchema>;

const stored = (type: string) => ({ blockJson: JSON.stringify({ type }), storedReference: "r1", size: 5_000n });
const ofBlocks = (type: string): Result => ({ content: [stored(type)], outputJson: jsonOfBlocks([stored(type)]) });

/** Calls the tool at a door before a router that has nothing but its result. */
async function answerOf(result: Result): Promise<string> {
  const away = () => {
    throw connectError("unavailable", "the bus does not answer", { reason: "BUS_UNAVAILABLE" });
  };
  await using door = await openTestDoor({
    tools: {
      async *callTool() {
        yield { event: { case: "result", value: result } };
      },
      listTools: away,
    },
    calls: { readResult: away, getToolCall: away },
  });
  return await callTool(door.url, "draw");
}

it.each([
  ["a picture that cannot be read", ofBlocks("image"), /image of 5000 bytes… .*toolbus:\/\/results\/r1/],
  ["a text that cannot be read", ofBlocks("text"), /text of 5000 bytes… .*toolbus:\/\/results\/r1/],
  ["a long text, and no list of tools", { outputJson: JSON.stringify("x".repeat(70_000)) }, /"text":"x{70000}"/],
])("LOOP-14 a result with %s is told as one", async (_, result, told) => {
  const answer = await answerOf(result);
  expect(answer).toMatch(told);
  expect(answer).not.toMatch(/"error":|"isError":true/);
});

it("LOOP-14 numbers that no double holds are told as the tool gave them", async () => {
  const [outputJson, metaJson] = [
    '{"id":9007199254740993,"all":[18446744073709551615]}',
    '{"cursor":9007199254740993}',
  ];
  const answer = await answerOf({ outputJson, metaJson });
  expect(answer).toContain(`"structuredContent":${outputJson}`);
  expect(answer).toContain(`"_meta":${metaJson}`);
});

const BYTES = "application/octet-stream";
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

it.each([
  ["a picture", { type: "image", mimeType: "image/png" }, PNG, "image/png"],
  ["a file", { type: "resource", resource: { uri: "f://a", mimeType: "application/pdf" } }, PNG, "application/pdf"],
  ["a file of an unwritable type", { type: "resource", resource: { mimeType: "\ud800" } }, PNG, BYTES],
  ["a text", { type: "text" }, Buffer.from("abc"), "text/plain"],
])("LOOP-14 %s that is too large is linked and read by its type", async (_, block, bytes, mimeType) => {
  const content = [{ blockJson: JSON.stringify(block), storedReference: "r 1?", size: 50_000_000n }];
  const asked: unknown[] = [];
  await using door = await openTestDoor({
    tools: {
      async *callTool() {
        yield { event: { case: "result", value: { content, outputJson: jsonOfBlocks(content) } } };
      },
    },
    calls: {
      async *readResult({ result }) {
        asked.push(result.value);
        yield { part: { case: "chunk", value: { data: bytes } } };
      },
    },
  });
  const [data = ""] = /\{"result.*/.exec(await callTool(door.url, "draw")) ?? [];
  const link = JSON.parse(data).result.content[1];
  expect(link).toMatchObject({ type: "resource_link", name: "result", mimeType });
  const read = await postMessage(door.url, { jsonrpc: "2.0", id: 2, method: "resources/read", params: link });
  expect(await read.json()).toMatchObject({ result: { contents: [{ uri: link.uri, mimeType }] } });
  expect(new Set(asked)).toEqual(new Set(["r 1?"]));
});

it("LOOP-14 a block that is stored as JSON is linked as such", async () => {
  const answer = await answerOf(ofBlocks("resource_link"));
  for (const said of ['"uri":"toolbus://results/r1"', '"name":"result.json"', '"mimeType":"application/json"'])
    expect(answer).toContain(said);
});

it("LOOP-14 a stored result whose tool may have a schema, as no list says, is told as one that a client takes", async () => {
  const answer = await answerOf({ outputJson: '{"beginning":"abc"}', storedReference: "r1" });
  expect(answer).toMatch(/"text":"abc… /);
  expect(answer, "a client that knows of a schema refuses the result otherwise, and calls again").toMatch(
    /"isError":true/,
  );
  expect(answer).not.toMatch(/"error":/);
});

it.each([
  ["2025-03-26", "text"],
  ["2025-11-25", "resource_link"],
])(
  "LOOP-14 a client that agreed on %s and names no revision later is told links as %s",
  async (protocolVersion, type) => {
    const content = [{ blockJson: JSON.stringify({ type: "resource_link", name: "map", uri: "file:///map" }) }];
    await using door = await openTestDoor({
      tools: {
        listTools: () => ({}),
        async *callTool() {
          yield { event: { case: "result", value: { content, outputJson: jsonOfBlocks(content) } } };
        },
      },
    });
    const post = (method: string, params: object, session = {}) =>
      fetch(door.url, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...session },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
    const begun = await post("initialize", {
      protocolVersion,
      capabilities: {},
      clientInfo: { name: "c", version: "1" },
    });
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
    expect(await (await post("tools/call", { name: "draw", arguments: {} }, session)).text()).toContain(
      `"type":"${type}"`,
    );
  },
);
