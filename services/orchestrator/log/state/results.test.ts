import { create } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { noResults, type Results, withOneMore } from "./results.ts";

const result = (outputJson: string): ToolResult => create(ToolResultSchema, { outputJson });
const outputsOf = (results: Results) => [...results.values()].map(({ outputJson }) => outputJson);

describe("results of a turn", () => {
  test("LOOP-4 those of an earlier state do not see what came later, on any branch", () => {
    const one = withOneMore(noResults, "a", result("1"));
    const two = withOneMore(one, "b", result("2"));
    const other = withOneMore(one, "b", result("3"));
    const three = withOneMore(two, "c", result("4"));
    expect([noResults, one, two, other, three].map(outputsOf)).toEqual([
      [],
      ["1"],
      ["1", "2"],
      ["1", "3"],
      ["1", "2", "4"],
    ]);
    expect([noResults, one, two, other, three].map(({ size }) => size)).toEqual([0, 1, 2, 2, 3]);
    expect([one.has("b"), one.get("b"), other.get("b")?.outputJson, two.has("c")]).toEqual([
      false,
      undefined,
      "3",
      false,
    ]);
  });

  test("one more of very many costs what one more of few does: nothing that is there is written again", () => {
    const count = 2_000;
    const written = vi.spyOn(Map.prototype, "set");
    let results: Results = noResults;
    for (let number = 0; number < count; number += 1) results = withOneMore(results, `c${number}`, result("1"));
    const times = written.mock.calls.length;
    written.mockRestore();
    expect(results.size).toBe(count);
    expect(times).toBeLessThan(2 * count);
  });
});
