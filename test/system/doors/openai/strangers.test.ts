// What a principal with a key gets at the door of OpenAI's clients that is not its own, and by what nobody should send.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { openConnection } from "../../../../cli/connection.ts";
import { answered, ask, keys, openResponsesDoor } from "../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
const model = "talker";
let alice: { url: string };
let mallory: { url: string; key: string };
let id = "";

beforeAll(async () => {
  const { suite } = await openResponsesDoor(stack);
  alice = { url: suite.url };
  mallory = { url: suite.url, key: keys.mallory };
  ({ id } = await answered(ask(alice, "POST /v1/responses", { model, input: "only for alice" })));
}, 120_000);
afterAll(() => stack.disposeAsync());

const goingOn = (fields: object) => (previous_response_id: string) => ({
  ...{ model, input: "and?", previous_response_id },
  ...fields,
});
const itemOf = (of: string) => of.replace(/^resp_(.*)$/, "msg_$1_1_1");
const attempts: readonly [string, string, (id: string) => object | undefined][] = [
  ["retrieving", "GET /v1/responses/:id", () => undefined],
  ["streaming", "GET /v1/responses/:id?stream=true", () => undefined],
  ["resuming", "GET /v1/responses/:id?stream=true&starting_after=3", () => undefined],
  ["reading the input of", "GET /v1/responses/:id/input_items", () => undefined],
  ["canceling", "POST /v1/responses/:id/cancel", () => ({})],
  ["deleting", "DELETE /v1/responses/:id", () => undefined],
  ["continuing", "POST /v1/responses", goingOn({})],
  ["continuing a stream of", "POST /v1/responses", goingOn({ stream: true })],
  [
    "referring to an item of",
    "POST /v1/responses",
    (of) => ({ model, input: [{ type: "item_reference", id: itemOf(of) }] }),
  ],
  ["compacting", "POST /v1/responses/compact", goingOn({})],
];

describe("SEC-2 a response of another principal", () => {
  it.each(attempts)("is not there for who is %s it", async (_, request, body) => {
    const said = async (of: string) => {
      const answer = await ask(mallory, request.replace(":id", of), body(of));
      return { status: answer.status, text: (await answer.text()).replaceAll(of.slice("resp_".length), ":id") };
    };
    const ofAnother = await said(id);
    expect(ofAnother.status).toBe(404);
    expect(ofAnother).toEqual(await said("resp_run_00000000000000000000"));
    expect(await answered(ask(alice, `GET /v1/responses/${id}`))).toMatchObject({ status: "completed" });
  });
});

const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const withTool = (tool: string) => `{"model":"talker","input":"x","tools":[${tool}]}`;
const withServer = (fields: object) =>
  withTool(JSON.stringify({ type: "mcp", server_label: "far", require_approval: "never", ...fields }));
const server_url = "http://127.0.0.1:9";
const bodies: Record<string, string> = {
  "parameters without end": withTool(`{"type":"function","name":"f","parameters":{"a":${deep}}}`),
  "a schema without end": `{"model":"talker","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"a":${deep}}}}}`,
  "a wish without end": `{"model":"talker","input":"x","reasoning":{"effort":"low","summary":"auto","x":${deep}}}`,
  "more tokens than there are": '{"model":"talker","input":"x","max_output_tokens":9007199254740991}',
  "more calls than there are": '{"model":"talker","input":"x","max_tool_calls":4294967296}',
  "a number that is none": '{"model":"talker","input":"x","temperature":1e999}',
  "an id of all": '{"model":"talker","input":"x","previous_response_id":"resp_*"}',
  "an image of this machine":
    '{"model":"talker","input":[{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}]}',
  "a command": withServer({ server_url: "stdio:sh", command: "sh", transport: "stdio" }),
  "a server without address": withServer({ command: "sh", args: ["-c", "true"] }),
  "a file as a server": withServer({ server_url: "file:///etc/passwd" }),
  "a secret in an address": withServer({ server_url: `${server_url}/\${secret:KEY}` }),
  "a secret in a header": withServer({ server_url, headers: { "x-key": `\${secret:KEY}` } }),
  "a header in a header": withServer({ server_url, headers: { x: "a\r\nhost: b" } }),
  "a header in a token": withServer({ server_url, authorization: "a\r\nhost: b" }),
  "a header of the connection": withServer({ server_url, headers: { host: "evil.example" } }),
};

it.each(Object.entries(bodies))("SEC-5 %s is refused", async (_, body) => {
  const answer = await ask(mallory, "POST /v1/responses", body);
  expect(await answer.json()).toMatchObject({ error: { type: expect.stringMatching(/invalid_request|not_found/) } });
});

it("SEC-5 a run whose notes its client wrote by hand is told as a response all the same", async () => {
  const connection = openConnection({ url: mallory.url, apiKey: keys.mallory });
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("x") } } }];
  for (const notes of ["{", "[]", '{"system":{},"reasoning":1,"instructions":[]}']) {
    const options = { metadata: { "toolbus.response": notes } };
    const { run } = await connection.client(RunService).createRun({ agent: model, input, options });
    for (const path of ["", "/input_items"])
      expect((await ask(mallory, `GET /v1/responses/resp_${run!.id}${path}`)).status, `${notes} ${path}`).toBe(200);
  }
});
