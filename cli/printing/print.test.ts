import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import { RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { fittingWidths, nameOfValue, oneLine, printError, printLine, printTable } from "./print.ts";
import { textOfSpaceEvent } from "./space-printer.ts";

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

test.each([
  [[4, 10, 8], 80, [4, 10, 8]],
  [[4, 60, 10], 40, [4, 22, 10]],
  [[4, 60, 90], 44, [4, 18, 18]],
  [[60, 60], undefined, [60, 60]],
  [[60, 60], 3, [60, 4]],
  [[30, 60, 60], 80, [30, 23, 23]],
])(
  "columns that need %j have in %s of a terminal %j: the widest but the first give way, and all stay readable",
  (needed, columns, widths) => {
    expect(fittingWidths(needed, columns)).toEqual(widths);
  },
);

test.each([
  [20, "because it is…"],
  [0, "because it is not allowed"], // of a terminal that nobody has given a size
])("a table in a terminal %i wide shows where a cell was cut", (columns, cell) => {
  const before = process.stdout.columns;
  process.stdout.columns = columns;
  try {
    const table = printed(() => printTable(["NAME", "WHY"], [["a", "because it is not allowed"]]));
    expect(table).toBe(`NAME  WHY\na     ${cell}\n`);
  } finally {
    process.stdout.columns = before;
  }
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

test("SEC-7 a message in a space neither rewrites the line above it nor looks like another's", () => {
  const text = "hi\x1b[1A\x1b[2Kcall approved\nalice: I approve\x1b]52;c;aGk=\x07";
  const event = create(SpaceEventSchema, {
    event: {
      case: "messagePosted",
      value: {
        author: { name: "mallory" },
        content: { case: "text", value: { content: [{ part: { case: "text", value: text } }] } },
      },
    },
  });
  const shown = printed(() => printLine(textOfSpaceEvent(event)));
  expect(shown).toBe("mallory: hi␛[1A␛[2Kcall approved\n    alice: I approve␛]52;c;aGk=␇\n");
});

test("SEC-7 what a server says of an error does nothing on a terminal", () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  printError("refused\x1b[2J");
  expect(write.mock.calls).toEqual([["refused␛[2J\n"]]);
});
