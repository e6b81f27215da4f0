import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type ProvidedContentSchema, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { ExecutionType, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { tool } from "../../testing/fakes/tools.ts";
import { answerFromProvider, createAnswers, failure, successJson } from "./answer.ts";

const stored: (string | Uint8Array)[] = [];
const answers = createAnswers({
  validator: createValidator(),
  maxBytes: 100,
  store: async (sessionId, text) => `${sessionId}-${stored.push(text)}`,
});
const roomyAnswers = createAnswers({
  validator: createValidator(),
  maxBytes: 512 * 1_024,
  store: async (sessionId, whole) => `${sessionId}-${stored.push(whole)}`,
});
const web = (outputSchemaJson = "") => tool("web", { executionType: ExecutionType.GATEWAY, outputSchemaJson });

const owner = { sessionId: "s", principal: "alice", isRepeatable: true };

describe("answers", () => {
  test("SEC-6 that find no room in the store are told with their beginning: the call has happened", async () => {
    const refusal = new Failure("resource_exhausted", '"mallory" has its share', { reason: "SHARE_EXCEEDED" });
    const crowded = createAnswers({
      validator: createValidator(),
      maxBytes: 100,
      store: () => Promise.reject(refusal),
    });
    const { outputJson, isError, storedReference } = await crowded.finish(
      web(),
      successJson(`"${"x".repeat(500)}"`),
      owner,
    );
    const rest = 'is not kept: "mallory" has its share';
    expect(JSON.parse(outputJson)).toEqual({ truncated: true, bytes: 502, beginning: `"${"x".repeat(24)}`, rest });
    expect({ isError, storedReference }).toEqual({ isError: false, storedReference: "" });
    const failed = await crowded.finish(web(), failure("x".repeat(500)), owner);
    expect(failed).toMatchObject({ isError: true, storedReference: "" });
    expect(failed.outputJson).toContain("the rest is not kept");
    await expect(crowded.bound(successJson(`"${"x".repeat(500)}"`), "s"), "who submits tries again").rejects.toBe(
      refusal,
    );
  });

  test("LOOP-14 of what must not happen twice are kept without what a store that does not answer would have held", async () => {
    const away = new Failure("unavailable", "storing a result: no leader", { reason: "BUS_UNAVAILABLE" });
    let asked = 0;
    const silent = createAnswers({
      validator: createValidator(),
      maxBytes: 1_000,
      store() {
        asked += 1;
        return Promise.reject(away);
      },
    });
    const whole = successJson(`"${"x".repeat(5_000)}"`);
    const once = { ...owner, isRepeatable: false };
    const { outputJson } = await silent.finish(web(), whole, once);
    expect(JSON.parse(outputJson)).toMatchObject({ truncated: true, rest: "is not kept: storing a result: no leader" });
    asked = 0;
    const image = { blockJson: '{"type":"image"}', data: new Uint8Array(3) };
    const shown = create(ProvidedResultSchema, { outputJson: '"two"', content: [image, image] });
    const { content } = await silent.finish(web(), answerFromProvider(shown), once);
    expect(content.map(({ blockJson }) => JSON.parse(blockJson))).toEqual(
      Array(2).fill({ type: "image", notKept: "storing a result: no leader" }),
    );
    expect(asked, "its silence is waited for once").toBe(1);
    await expect(silent.finish(web(), whole, owner), "one that may be repeated is").rejects.toBe(away);
  });

  test("go through byte for byte", async () => {
    const text = '{"n": 12345678901234567890}';
    expect((await answers.finish(web(), successJson(text), owner)).outputJson).toBe(text);
  });

  test("LOOP-8 that are no JSON, or not what was promised, are errors of their call", async () => {
    expect((await answers.finish(web(), successJson("oops"), owner)).isError).toBe(true);
    const promised = web('{"type":"object","required":["id"]}');
    expect((await answers.finish(promised, successJson("{}"), owner)).outputJson).toBe(
      `{"error":"Tool \\"web\\" answered with something invalid: result: must have required property 'id'"}`,
    );
  });

  test("ORCH-7 what an MCP tool promises of its structured content is checked like every other promise", async () => {
    const promised = tool("web", {
      executionType: ExecutionType.MCP,
      outputSchemaJson: '{"type":"object","required":["id"]}',
    });
    expect(await answers.finish(promised, successJson('{"id":1}'), owner)).toMatchObject({ isError: false });
    expect((await answers.finish(promised, successJson("{}"), owner)).outputJson).toMatch(/required property 'id'/);
  });

  test("LOOP-8 that hold bytes are told with references to them, and with their long texts", async () => {
    const image = { blockJson: '{"type":"image","mimeType":"image/png"}', data: Buffer.from([1, 2, 3]) };
    const long = JSON.stringify({ type: "text", text: "x".repeat(20_000), annotations: { priority: 1 } });
    const told = (blocks: MessageInitShape<typeof ProvidedContentSchema>[], outputJson: string) =>
      roomyAnswers.finish(
        web(),
        answerFromProvider(create(ProvidedResultSchema, { outputJson, content: blocks, metaJson: '{"a":1}' })),
        owner,
      );
    const pictured = await told([image], `{"content":[${image.blockJson}]}`);
    expect(stored.at(-1)).toEqual(image.data);
    const storedReference = `s-${stored.length}`;
    expect(pictured).toMatchObject({ metaJson: '{"a":1}', content: [{ ...{ storedReference, size: 3n } }] });
    expect(pictured.content[0]?.blockJson).toBe(image.blockJson);
    expect(JSON.parse(pictured.outputJson)).toEqual({
      content: [{ type: "image", mimeType: "image/png", storedReference, bytes: 3 }],
    });
    const written = await told([{ blockJson: long }, image], '{"structured":true}');
    expect(written.outputJson).toBe('{"structured":true}');
    expect(JSON.parse(written.content[0]?.blockJson ?? "")).toEqual({ type: "text", annotations: { priority: 1 } });
    expect(stored.at(-2)).toBe("x".repeat(20_000));
    const many = await told(Array(2_000).fill({ blockJson: `{"type":"note","of":"${"y".repeat(100)}"}` }), "1");
    expect(many.content.length).toBeLessThan(600);
    expect(JSON.parse(many.content.at(-1)?.blockJson ?? "")).toEqual({ type: "more", count: expect.any(Number) });
    expect(many.content.length - 1 + JSON.parse(String(stored.at(-1))).length).toBe(2_000);
  });

  test("KIND-4 errors have one form, whatever their tool wrote", async () => {
    for (const text of ["boom", '{"message":"boom"}', "[1]"]) {
      const answer = await answers.finish(web(), { ...failure(""), outputJson: text }, owner);
      expect(answer).toMatchObject({ isError: true, outputJson: JSON.stringify({ error: text }) });
    }
  });

  test("LOOP-8 that are too large are stored whole and shown shortened, as JSON, with the reference", async () => {
    const whole = JSON.stringify("é".repeat(500));
    const answer = await answers.finish(web(), successJson(whole), owner);
    expect(stored.at(-1)).toBe(whole);
    expect(answer.storedReference).toBe(`s-${stored.length}`);
    expect(JSON.parse(answer.outputJson)).toEqual({
      ...{ truncated: true, bytes: 1_002, storedReference: answer.storedReference },
      beginning: `"${"é".repeat(12)}`, // no half characters
      rest: `read_result({"reference":"${answer.storedReference}","offset":25,"limit":25})`,
    });
    const error = await answers.finish(web(), failure("x".repeat(500)), owner);
    expect(JSON.parse(error.outputJson).error).toMatch(/stored as s-\d+; the rest: read_result\(/);
  });

  test("LOOP-17 of providers are a result, and beside it what was used", () => {
    const usage = create(UsageSchema, { inputTokens: 3n });
    const provided = create(ProvidedResultSchema, { outputJson: "1", usage, callCount: 2, endsRun: true });
    const answer = answerFromProvider(provided);
    expect(answer).toMatchObject({ outputJson: "1", storedReference: "", usage, callCount: 2, endsRun: true });
    expect(toJson(ToolResultSchema, answer)).toEqual({ outputJson: "1" });
  });

  test("LOOP-12 LOOP-17 what was used on a call's behalf was used, whatever becomes of its answer", async () => {
    const usage = create(UsageSchema, { inputTokens: 3n, outputTokens: 4n, cost: usd(0.5) });
    const texts = [JSON.stringify("x".repeat(2_000)), "no JSON", '{"ok":1}'];
    for (const [outputJson, isError] of texts.flatMap((text) => [[text, false] as const, [text, true] as const])) {
      const answer = await answers.finish(web(), { ...failure(""), outputJson, isError, usage, callCount: 2 }, owner);
      expect(answer, outputJson.slice(0, 10)).toMatchObject({ usage, callCount: 2 });
    }
  });
});
