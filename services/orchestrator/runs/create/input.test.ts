import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "vitest";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { CreateRunRequestSchema, InputItemSchema, type ToolOutput } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { itemsFromInput } from "./input.ts";

type Given = MessageInitShape<typeof InputItemSchema>;

const said = (role: Role, text: string): Given => ({
  item: { case: "message", value: { role, content: textContent(text) } },
});
const output = (outcome: ToolOutput["outcome"], more: { submissionId?: string } = {}): Given => ({
  item: { case: "output", value: { callId: "a", outcome, ...more } },
});
const result = (value: string) => ({ case: "resultJson", value }) as const;
const hello = said(Role.USER, "hello");
const itemsFrom = (input: Given[]) =>
  itemsFromInput(
    input.map((item) => create(InputItemSchema, item)),
    { sender: "ada" },
  );

describe("the input of a run", () => {
  test.each<[Given[], string]>([
    [[hello, {}], "input[1] holds nothing"],
    [
      [{ item: { case: "message", value: { role: Role.USER, content: [{}] } } }],
      "input[0].message.content[0] is of a kind that is not known here",
    ],
    [[said(Role.USER, " \n")], "input[0] holds nothing"],
    [[said(Role.SYSTEM, "obey")], "input[0].message.role must be ROLE_USER or ROLE_ASSISTANT"],
    [[said(Role.UNSPECIFIED, "hm")], "input[0].message.role must be ROLE_USER or ROLE_ASSISTANT"],
    [[hello, output(result("sunny"))], "input[1].output.result_json is not JSON"],
    [
      [output(result("1"), { submissionId: "x" })],
      "input[0].output.submission_id is not for input: a repetition is told by the idempotency_key",
    ],
    [
      [output({ case: undefined })],
      "neither a result nor an error of call a is given; a result that holds nothing is null",
    ],
  ])("LOOP-5 LOOP-8 is refused with the place of what cannot be right: %#", async (input, message) => {
    await expect(itemsFrom(input)).rejects.toThrow(expect.objectContaining({ code: "invalid_argument", message }));
  });

  test.each([Role.UNSPECIFIED, Role.SYSTEM])(
    "LOOP-5 speaks for a user or the agent, and for nobody else: %s",
    (role) => {
      const request = create(CreateRunRequestSchema, { agent: "a", input: [hello, said(role, "obey")] });
      const { violations = [] } = createValidator().validate(CreateRunRequestSchema, request);
      expect(violations.map(String)).toEqual([expect.stringContaining("must be ROLE_USER or ROLE_ASSISTANT")]);
    },
  );

  test.each(["", "two words", "x".repeat(65)])(
    "LOOP-5 comes with no function tool whose name no model takes: %j",
    (name) => {
      const options = { functionTools: [{ name: "ask" }, { name }] };
      const request = create(CreateRunRequestSchema, { agent: "a", input: [hello], options });
      const { violations = [] } = createValidator().validate(CreateRunRequestSchema, request);
      expect(violations.map(String)).toEqual([expect.stringContaining("options.function_tools[1].name")]);
    },
  );

  test("LOOP-5 stands in the conversation as messages and as what calls answered, errors as such", async () => {
    const input = [hello, said(Role.ASSISTANT, ""), output(result("null")), output({ case: "error", value: "no" })];
    expect((await itemsFrom(input)).map(({ item }) => item)).toMatchObject([
      { case: "message", value: { role: Role.USER, content: textContent("hello") } },
      { case: "message", value: { role: Role.ASSISTANT, content: textContent("") } },
      { case: "functionCallOutput", value: { callId: "a", result: { outputJson: "null", isError: false } } },
      { case: "functionCallOutput", value: { callId: "a", result: { outputJson: '{"error":"no"}', isError: true } } },
    ]);
  });

  test("LOOP-18 a user may give a file without a word, and the agent gives none", async () => {
    const file = { mediaType: "image/png", source: { case: "url" as const, value: "https://example.com/a.png" } };
    const given = (role: Role): Given => ({
      item: { case: "message", value: { role, content: [{ part: { case: "file", value: file } }] } },
    });
    expect(await itemsFrom([given(Role.USER)])).toHaveLength(1);
    await expect(itemsFrom([given(Role.ASSISTANT)])).rejects.toThrow(
      "input[0].message.content[0] is a file, which users alone give",
    );
  });

  test.each(["https://", "http://[::1", "https://a b/c.png", "http://example.com:70000/"])(
    "LOOP-18 names no file at %j, which is no address and would fail all runs of its session",
    async (value) => {
      const file = { mediaType: "image/png", source: { case: "url" as const, value } };
      const content = [{ part: { case: "file" as const, value: file } }];
      await expect(itemsFrom([{ item: { case: "message", value: { role: Role.USER, content } } }])).rejects.toThrow(
        "input[0].message.content[0].file.url is no address",
      );
    },
  );

  test("LOOP-18 tells of calls that were made elsewhere", async () => {
    const call: Given = { item: { case: "call", value: { callId: "a", name: "look", argumentsJson: "{}" } } };
    expect((await itemsFrom([hello, call, output(result('"seen"'))])).map(({ item }) => item)).toMatchObject([
      {},
      { case: "functionCall", value: { callId: "a", name: "look", argumentsJson: "{}" } },
      { case: "functionCallOutput", value: { callId: "a", result: { outputJson: '"seen"' } } },
    ]);
  });
});
