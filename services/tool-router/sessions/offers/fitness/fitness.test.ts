import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type OfferedTool, OfferedToolSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createOfferJudge, MAX_TOOLS } from "./fitness.ts";

const judge = createOfferJudge();

function offered(name: string, more: object = {}): OfferedTool {
  return create(OfferedToolSchema, { source: "shop", tool: { name, ...more } });
}

const good = offered("buy", { inputSchemaJson: '{"type":"object","properties":{"n":{"type":"integer"}}}' });

test.each([
  ["no JSON", "{", /^its input schema is no JSON$/],
  ["a list", "[]", /a JSON Schema is an object/],
  ["a type that there is none", '{"type":"objekt"}', /not one of objects/],
  ["one of texts", '{"type":"string"}', /not one of objects/],
  ["true", "true", /not one of objects/],
  ["too long", `{"description":"${"x".repeat(300_000)}"}`, /longer than 262144/],
])(
  "KIND-2 a tool whose input schema is %s cannot be called, and the one beside it can",
  async (_, inputSchemaJson, fault) => {
    const bad = offered("bad", { inputSchemaJson });
    const fitness = await judge([bad, good]);
    expect(fitness.tools).toEqual([bad, good]);
    expect([...fitness.faults.keys()]).toEqual([bad]);
    expect(fitness.faults.get(bad)).toMatch(fault);
    expect(fitness.summary).toContain('"bad": its input schema');
  },
);

test("KIND-2 an output schema is judged likewise, but that one of MCP may be longer", async () => {
  const bad = offered("bad", { outputSchemaJson: "[]" });
  const ofMcp = offered("mcp", { outputSchemaJson: "[]", executionType: ExecutionType.MCP });
  const outputSchemaJson = `{"description":"${"x".repeat(300_000)}"}`;
  const [long, longOfMcp] = [
    offered("a", { outputSchemaJson }),
    offered("b", { outputSchemaJson, executionType: ExecutionType.MCP }),
  ];
  expect([...(await judge([bad, ofMcp, long, longOfMcp])).faults.keys()]).toEqual([bad, ofMcp, long]);
});

test("KIND-2 names that are none, and tools that are offered twice, are left out and told", async () => {
  const names = ["", "x".repeat(257), "a\nb", "\u0000", "\ud800", "buy"];
  const fitness = await judge([good, ...names.map((name) => offered(name))]);
  expect(fitness.tools).toEqual([good]);
  expect(fitness.summary).toMatch(/"" is no name; "x{64}" is longer than 256 characters; .*; and 3 more$/);
  expect((await judge([offered("läs das"), offered("@x/y"), offered("ключ")])).summary).toBe("");
});

test("KIND-2 names by which a reference would mean two things are left out and told", async () => {
  const bare = create(OfferedToolSchema, { tool: { name: "@shop/buy" } });
  const fitness = await judge([offered("get_*"), bare, good]);
  expect(fitness.tools).toEqual([good]);
  expect(fitness.summary).toMatch(/^"get_\*" holds a \*, .*; "@shop\/buy" begins with @, /);
});

test("KIND-2 of a hundred thousand tools, the first few thousand are taken, in little time", async () => {
  const many = Array.from({ length: 100_000 }, (_, n) =>
    offered(`t${n}`, { inputSchemaJson: `{"title":"${n % 10}"}` }),
  );
  const startedAt = performance.now();
  const fitness = await judge(many);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(fitness.tools).toHaveLength(MAX_TOOLS);
  expect(fitness.summary).toBe(`it offers 100000 tools, of which ${MAX_TOOLS} are taken`);
});

test("KIND-2 a tool whose schema says what cannot be checked here can be called", async () => {
  const odd = [{ n: { type: "any" } }, { n: { pattern: "^[\\w-.]+$" } }, { n: { $ref: "https://example.org/n.json" } }];
  const tools = odd.map((properties, n) =>
    offered(`odd${n}`, { inputSchemaJson: JSON.stringify({ type: "object", properties }) }),
  );
  expect((await judge(tools)).faults.size).toBe(0);
});

test("SEC-5 of schemas that were judged and are offered no longer, no text stays", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const heapAfter = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const inputSchemaJson = JSON.stringify({ type: "object", description: `${Math.random()}`.padEnd(200_000, "x") });
      expect((await judge([offered("large", { inputSchemaJson })])).faults.size).toBe(0);
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapAfter(10);
  expect((await heapAfter(200)) - before).toBeLessThan(8 * 2 ** 20);
});
