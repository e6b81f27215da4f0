import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Run, RunSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { allPages } from "./all-pages.ts";
import { openPage, type PageRequest, pageOf, placeOfNumber } from "./page.ts";

const namesIn = (names: readonly string[]) => ({ elements: names, placeOf: (name: string) => name });

test("BUS-1 pages of any size hold all elements once and in order, those of one place too", async () => {
  const names = fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(names, fc.integer({ min: 1, max: 7 }), async (given, pageSize) => {
      const read = async (pageToken: string) => pageOf(["names"], namesIn(given), { pageSize, pageToken });
      const pages = await allPages(read);
      expect(pages.flatMap(({ items }) => items)).toEqual([...given].sort());
      for (const { items } of pages.slice(0, -1)) expect(items).toHaveLength(pageSize);
    }),
  );
});

test("BUS-1 what comes and goes between two pages moves nothing else, and 0 means 100", () => {
  const names = Array.from({ length: 150 }, (_, index) => placeOfNumber(BigInt(index)));
  const page = (standing: string[], request: Partial<PageRequest>) =>
    pageOf(["names"], namesIn(standing), { pageSize: 0, pageToken: "", ...request });
  const first = page(names, {});
  expect(first.items).toEqual(names.slice(0, 100));
  const standing = ["0", ...names.slice(7), "1"];
  const second = page(standing, { pageToken: first.nextPageToken });
  expect(second).toEqual({ items: [...names.slice(100), "1"], nextPageToken: "" });
});

test("BUS-1 a page of large elements holds what every client takes, or one element", async () => {
  const mb = 1_024 * 1_024;
  const runs = [1, 1, 2, 5, 5, 1, 1, 1].map((size, at) =>
    create(RunSchema, { id: `r${at}`, outputText: "x".repeat(size * mb - 64) }),
  );
  const placeOf = ({ id }: Run) => id;
  const read = async (pageToken: string) =>
    pageOf(["runs"], { elements: runs, placeOf, takes: openPage(RunSchema) }, { pageSize: 0, pageToken });
  const pages = await allPages(read);
  expect(pages.map(({ items }) => items.map(({ id }) => id))).toEqual([
    ["r0", "r1"],
    ["r2"],
    ["r3"],
    ["r4"],
    ["r5", "r6", "r7"],
  ]);
});
