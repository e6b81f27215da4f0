import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ToolMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { createFitting } from "./message-size.ts";

const mib = 1_024 * 1_024;

describe("a call that is too large to be shown", () => {
  const stored: string[] = [];
  const fitted = createFitting(async (sessionId, outputJson) => `${sessionId}.${stored.push(outputJson)}`);

  test("TOOL-10 its result is shown shortened, with the reference of the whole", async () => {
    const outputJson = JSON.stringify("é".repeat(mib));
    const tool = create(ToolMessageSchema, {
      argumentsJson: JSON.stringify("x".repeat(mib)),
      outputSchemaJson: " ".repeat(mib),
      result: { outputJson },
    });
    const shown = await fitted(tool, "s");
    expect(toBinary(ToolMessageSchema, shown).length).toBeLessThan(mib / 2);
    expect(shown.result?.storedReference).toBe("s.1");
    expect(stored).toEqual([outputJson]);
    expect(JSON.parse(shown.result?.outputJson ?? "")).toMatchObject({ truncated: true, bytes: 2 * mib + 2 });
    expect(JSON.parse(shown.argumentsJson)).toEqual({ truncated: true, bytes: mib + 2 });
  });

  test("TOOL-10 an error stays one, and what the router stored is not stored again", async () => {
    const result = { outputJson: JSON.stringify({ error: "x".repeat(mib) }), isError: true, storedReference: "known" };
    const shown = await fitted(create(ToolMessageSchema, { result }), "s");
    expect(shown.result).toMatchObject({ isError: true, storedReference: "known" });
    expect(JSON.parse(shown.result?.outputJson ?? "").error).toMatch(/^\{"error":"x+.*stored as known/);
  });

  test("TOOL-10 what fits is shown as it is", async () => {
    const tool = create(ToolMessageSchema, { result: { outputJson: "1" } });
    expect(await fitted(tool, "s")).toBe(tool);
  });
});
