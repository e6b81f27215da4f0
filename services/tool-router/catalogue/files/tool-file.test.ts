import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { parseToolFile } from "./tool-file.ts";

const parse = (file: object) => parseToolFile(JSON.stringify({ name: "order", executionType: "external", ...file }));

test("TOOL-5 a tool's file says how long its calls take results", () => {
  expect(parse({ isAsync: true, expires: 3_600_000 })).toMatchObject({
    value: { isAsync: true, ttl: durationFromMs(3_600_000) },
  });
  const whole = parse({});
  expect(whole).toMatchObject({ value: { isAsync: false } });
  expect(whole).not.toHaveProperty("value.ttl");
});

test.each([0, -1, 1.5, "1h"])("TOOL-1 an expiry of %j is refused with its path", (expires) => {
  expect(JSON.stringify(parse({ expires }))).toMatch(/expires/);
});
