import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuseUnfitInput } from "./input.ts";

type Given = MessageInitShape<typeof ItemSchema>;

const said = (role: Role, text: string): Given => ({ item: { case: "message", value: { role, text } } });
const call = (callId: string, name = "look", argumentsJson = "{}"): Given => ({
  item: { case: "functionCall", value: { callId, name, argumentsJson } },
});
const output = (callId: string, outputJson = "1"): Given => ({
  item: { case: "functionCallOutput", value: { callId, result: { outputJson } } },
});
const claimed = (claim: MessageInitShape<typeof ToolResultSchema>): Given => ({
  item: { case: "functionCallOutput", value: { callId: "a", result: { outputJson: "1", ...claim } } },
});
const hello = said(Role.USER, "hello");
const check = (input: Given[]) => refuseUnfitInput(input.map((item) => create(ItemSchema, item)));

describe("the input of a run", () => {
  test.each<[Given[], string]>([
    [[hello, {}], "input[1] holds nothing"],
    [[said(Role.USER, " \n")], "input[0] holds nothing"],
    [[said(Role.SYSTEM, "")], "input[0] holds nothing"],
    [[hello, call("")], "input[1].function_call.call_id is empty"],
    [[hello, call("a", " ")], "input[1].function_call.name is empty"],
    [[call("a"), output("a"), hello, call("a")], "input[3].function_call.call_id is that of input[0]"],
    [[hello, output("a"), call("a")], "input[1].function_call_output stands before its call, input[2]"],
    [[output("a", "sunny")], "input[0].function_call_output.result.output_json is not JSON"],
    [[claimed({ endsRun: true })], "input[0].function_call_output.result.ends_run is not for a client to say"],
    [[claimed({ usage: {} })], "input[0].function_call_output.result.usage is not for a client to say"],
    [[claimed({ calls: 1 })], "input[0].function_call_output.result.calls is not for a client to say"],
    [
      [claimed({ storedReference: "x" })],
      "input[0].function_call_output.result.stored_reference is not for a client to say",
    ],
    [
      [{ item: { case: "functionCallOutput", value: { callId: "a" } } }],
      "input[0].function_call_output.result is missing",
    ],
  ])("LOOP-5 LOOP-8 is refused with the place of what cannot be right: %#", (input, message) => {
    expect(() => check(input)).toThrow(expect.objectContaining({ code: "invalid_argument", message }));
  });

  test("LOOP-13 that only looks odd is taken: the prompt is made of it so that providers take it", () => {
    expect(() =>
      check([
        said(Role.ASSISTANT, ""),
        said(Role.SYSTEM, "Be brief."),
        call("call 1"),
        hello,
        said(Role.SYSTEM, "Hm."),
      ]),
    ).not.toThrow();
    expect(() =>
      check([call("a", "a name with blanks", '{"half":'), call("b"), output("b"), output("of an earlier run"), hello]),
    ).not.toThrow();
  });
});
