import { afterEach, expect, test, vi } from "vitest";
import { RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { nameOfValue, oneLine, printTable } from "./print.ts";

afterEach(() => void vi.restoreAllMocks());

/** What standard output was given. */
function printed(print: () => void): string {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  print();
  return write.mock.calls.map(([text]) => String(text)).join("");
}

test("a table's columns are as wide as their widest cell, and the last one ends where its text ends", () => {
  const table = printed(() =>
    printTable(
      ["NAME", "KIND"],
      [
        ["a", "b"],
        ["longer", "c"],
      ],
    ),
  );
  expect(table).toBe("NAME    KIND\na       b\nlonger  c\n");
});

test("a table without rows still says what it would show", () => {
  expect(printed(() => printTable(["NAME", "KIND"], []))).toBe("NAME  KIND\n");
});

test("text of many lines fits into a cell", () => {
  expect(oneLine("  one\n\ttwo   three ")).toBe("one two three");
});

test("a value of the contract is told in words, one that it does not know by its number", () => {
  expect(nameOfValue(RunStateSchema, RunState.REQUIRES_ACTION)).toBe("requires action");
  expect(nameOfValue(RunStateSchema, 99)).toBe("99");
});
