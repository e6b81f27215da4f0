import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { outputFromResult } from "./result-output.ts";

test.each([
  ['{"id":9007199254740993}', "text"],
  ['{"id":"order-8599e705-fbea","digits":"90071992547409930"}', "json"],
])("a result is JSON to a model's provider unless that would change a number: %s is %s", (outputJson, type) => {
  expect(outputFromResult(create(ToolResultSchema, { outputJson }))).toMatchObject({ type });
});
