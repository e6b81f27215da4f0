import { expect, test } from "vitest";
import { faultOfNode } from "./faults.ts";

test("SEC-5 the Node that comes with the packages reads each name in JSON as it was written, whatever others have sent", () => {
  const sent = '{"id":7,"caf\\u00e9":"Ada"}';
  JSON.parse('{"id":7,"caf\\\\":0}');
  expect(Object.keys(JSON.parse(sent))).toEqual(["id", "café"]);
  expect(faultOfNode()).toBeUndefined();
});
