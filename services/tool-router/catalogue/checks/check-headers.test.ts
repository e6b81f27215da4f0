import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ExecutionType, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { faultsOfTool } from "./check-tool.ts";

const secret = (name: string) => `\${secret:${name}}`;
const secrets = new Map([
  ["KEY", "s3cret"],
  ["LINES", "one\ntwo"],
]);
const check = { validator: createValidator(), hasProvider: () => true, secrets };

function faultsOf(headers: Record<string, string>): Promise<string[]> {
  const execution = { url: "https://a.example/", headers };
  return faultsOfTool(create(ToolSchema, { name: "web", executionType: ExecutionType.GATEWAY, execution }), check);
}

test("TOOL-3 headers that can be sent are no fault", async () => {
  const authorization = `Bearer ${secret("KEY")}`;
  expect(await faultsOf({ Authorization: authorization, "x-empty": "", "x-tab": "a\tb", "x-latin": "é" })).toEqual([]);
});

test.each([
  ["a b", "x", 'execution.headers["a b"]: is no name of a header'],
  ["", "x", 'execution.headers[""]: is no name of a header'],
  ["x-a", "one\r\nx-b: two", "execution.headers.x-a: holds a line break or another character that no header can hold"],
  ["x-a", "日", "execution.headers.x-a: holds a line break or another character that no header can hold"],
  ["x-a", secret("LINES"), "execution.headers.x-a: holds a line break or another character that no header can hold"],
  ["Content-Length", "3", "execution.headers.Content-Length: belongs to the connection, and cannot be given"],
  ["host", "inside", "execution.headers.host: belongs to the connection, and cannot be given"],
  ["Transfer-Encoding", "chunked", /: belongs to the connection/],
  [
    "x-a",
    secret("NONE"),
    "execution.headers.x-a: the secret NONE is not set: give TOOLBUS_SECRET_NONE to the tool router",
  ],
  [
    "x-a",
    secret("NO-NAME"),
    `execution.headers.x-a: a secret is written ${secret("NAME")}, with letters, digits and _`,
  ],
])("TOOL-3 the header %j with %j is refused with its path", async (name, value, fault) => {
  expect(await faultsOf({ "x-good": "1", [name]: value })).toEqual([
    typeof fault === "string" ? fault : expect.stringMatching(fault),
  ]);
});

test("TOOL-3 all faulty headers are told at once, with a name that is there twice", async () => {
  expect(await faultsOf({ "x-a": secret("NONE"), "X-A": "2", te: "trailers" })).toEqual([
    expect.stringMatching(/^execution.headers.x-a: the secret NONE/),
    "execution.headers.X-A: is there twice, since case means nothing in names of headers",
    expect.stringMatching(/^execution.headers.te: belongs to/),
  ]);
});
