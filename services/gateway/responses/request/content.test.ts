import { expect, it } from "vitest";
import { computedMs } from "#runtime/time/testing/machine-time.ts";
import { parseBody } from "./body.ts";
import { contentFrom } from "./content.ts";

const fileOf = (file: Record<string, unknown>) => contentFrom([{ type: "input_file", ...file }], "input[0]")[0]?.part;
const PDF = { case: "file", value: { mediaType: "application/pdf" } };

it("SEC-5 the type of a file is read from a name of any length at once", async () => {
  const filename = `${".a?".repeat(100_000)}\n`;
  const read = () => expect(() => fileOf({ filename, file_data: "eA==" })).toThrow(/does not say of which media type/);
  expect(await computedMs(read)).toBeLessThan(1_000);
});

it("LOOP-18 the ending of a name tells the type of a file, also in front of a query, and nothing else does", () => {
  expect(fileOf({ filename: "of #1? the.PDF", file_data: "eA==" })).toMatchObject(PDF);
  expect(fileOf({ file_url: "https://files.example/a.b/report.pdf?version=1.2#page" })).toMatchObject(PDF);
  expect(fileOf({ file_url: "https://files.example/report.pdf?file=a.txt" })).toMatchObject(PDF);
  for (const filename of ["pdf", "report.pdf/part", "report.constructor"])
    expect(() => fileOf({ filename, file_data: "eA==" }), filename).toThrow(/does not say of which media type/);
});

it("SEC-5 of many faults in a body the first are told", () => {
  const metadata = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`a${n}`, n]));
  const refused = () => parseBody({ model: "clerk", input: "go", metadata });
  expect(refused).toThrow(/metadata.a0: .*; metadata.a9: [^;]*$/);
});

it("LOOP-18 what is no base64 is refused, however long, and an empty file is not", () => {
  const imageOf = (data: string) => () =>
    contentFrom([{ type: "input_image", image_url: `data:image/png;base64,${data}` }], "input[0]");
  expect(imageOf("iVBO\nRw0-_=")()).toMatchObject([{ part: { case: "file" } }]);
  for (const data of ["@@@", `${" ".repeat(1_000_000)}@`]) expect(imageOf(data)).toThrow(/image_url: .*base64/);
  expect(fileOf({ filename: "a.txt", file_data: "data:text/plain;base64," })).toMatchObject({ case: "text" });
  expect(() => fileOf({ filename: "a.pdf", file_data: "{}" })).toThrow(/file_data: .*base64/);
});
