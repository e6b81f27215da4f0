// The short form of `npm run faults -- workers`.

import { expect, it } from "vitest";
import { figuresOfFuzz } from "./figures.ts";
import { runFuzz } from "./fuzz/fuzz.ts";

const onProgress = () => {};

it("WORK-1 metadata that the pool offers are taken by uv, with the same packages; others are refused with words", async () => {
  const { figures, examples } = figuresOfFuzz(
    await runFuzz({ uv: process.env.TOOLBUS_UV!, seed: 7, files: 80, onProgress }),
  );
  const value = (metric: string) => figures.find((figure) => figure.metric === metric)?.value;
  expect(
    figures.filter(({ value, limit }) => limit !== undefined && value > limit),
    examples.join("\n"),
  ).toEqual([]);
  expect(value("files_taken_by_both")).toBeGreaterThan(5);
  expect(value("files_refused_by_both")).toBeGreaterThan(5);
}, 60_000);
