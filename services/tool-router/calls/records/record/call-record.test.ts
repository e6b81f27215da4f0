import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { successJson } from "../../answers/answer.ts";
import { callRecord, decodeCall, encodeCall } from "./call-record.ts";

test("LOOP-17 a recorded call keeps what was used on its behalf, which its clients are not shown", () => {
  const usage = create(UsageSchema, { inputTokens: 3n });
  const result = { ...successJson("1"), usage, callCount: 2, endsRun: true };
  const record = callRecord({ callId: "c", result });
  expect(decodeCall(encodeCall(record)).result).toMatchObject({ outputJson: "1", usage, callCount: 2, endsRun: true });
  const shown = fromBinary(ToolCallSchema, toBinary(ToolCallSchema, create(ToolCallSchema, record)));
  expect(shown.result).toEqual(successJson("1"));
});
