import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openWorld, userItem, type World } from "../test-orchestrator.ts";

const router = createFakeRouter([
  { name: "double", answer: (args) => ({ value: (args as { value: number }).value * 2 }) },
]);
const inputSchemaJson = JSON.stringify({
  type: "object",
  properties: { city: { type: "string", pattern: "^[A-Z]" } },
  required: ["city"],
  additionalProperties: false,
});
const outputSchemaJson = JSON.stringify({
  type: "object",
  properties: { degrees: { type: "number" } },
  required: ["degrees"],
});
const weather = { name: "weather", inputSchemaJson, outputSchemaJson };

let world: World;
beforeAll(async () => {
  world = await openWorld({ router });
  await world.openOrchestrator("one");
  const asks = (id: string, city: string | number) => ({ name: "weather", id, arguments: { city } });
  await world.writeScript("echo", { turns: [{ text: "done" }] });
  await world.writeScript("unfit", {
    turns: [
      { calls: [asks("a", 7), { name: "double", id: "b", arguments: { value: 2 } }] },
      { calls: [asks("c", "Bern")] },
      { text: "{{result.weather.degrees}}" },
    ],
  });
  await world.writeScript("both", { turns: [{ calls: [asks("a", "Bern"), asks("b", "Rom")] }, { text: "fine" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function start(agent: string, functionTools: object[]) {
  const { run } = await world.runs.createRun({ agent, input: [userItem("go")], options: { functionTools } });
  return run!.id;
}

const view = async (runId: string) => (await world.runs.getRun({ runId })).run!;
const comesTo = (runId: string, status: RunState) =>
  until(async () => (await view(runId)).state === status, { what: `the status ${status}`, timeoutMs: 60_000 });
const resultsOf = async (runId: string) =>
  (await view(runId)).items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value] : []));
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable("it was accepted"),
    (error: unknown) => failureFromConnectError(error as ConnectError),
  );
const submit = (runId: string, outputs: Record<string, unknown>) =>
  world.runs.submitOutputs({
    runId,
    outputs: Object.entries(outputs).map(([callId, value]) => ({
      callId,
      outcome: { case: "resultJson", value: JSON.stringify(value) },
    })),
  });

describe("tools of a run's client", () => {
  test.each([
    ["no JSON", { inputSchemaJson: "{" }, "[1].input_schema_json: is no JSON"],
    ["no object", { inputSchemaJson: "7" }, "[1].input_schema_json: is no JSON Schema: a JSON Schema is an object"],
    ["not of objects", { inputSchemaJson: '{"type":"string"}' }, "[1].input_schema_json: is not one of objects"],
    [
      "of no known type",
      { inputSchemaJson: '{"properties":{"a":{"type":"text"}}}' },
      "[1].input_schema_json: is no JSON Schema: schema/properties/a/type must be equal to one of the allowed values",
    ],
    [
      "with a pattern that is none",
      { inputSchemaJson: '{"properties":{"a":{"pattern":"("}}}' },
      "[1].input_schema_json: is no JSON Schema",
    ],
    [
      "that lies elsewhere",
      { inputSchemaJson: '{"$ref":"https://example.org/a.json"}' },
      '[1].input_schema_json: is no JSON Schema: it refers to "https://example.org/a.json", which is not in it',
    ],
    [
      "too large",
      { inputSchemaJson: JSON.stringify({ description: "x".repeat(270_000) }) },
      "[1].input_schema_json: is longer than 262144 characters",
    ],
    ["bad for results", { outputSchemaJson: '{"type":"text"}' }, "[1].output_schema_json: is no JSON Schema"],
  ])(
    "LOOP-5 TOOL-1 with a schema that is %s are refused when the run is created, with the path",
    async (_, bad, words) => {
      const failure = await failureOf(start("echo", [weather, { name: "other", ...bad }]));
      expect(failure).toMatchObject({ code: "invalid_argument", reason: "INVALID_REQUEST" });
      expect(failure.message).toContain("options.function_tools");
      expect(failure.message).toContain(words);
    },
  );

  test("LOOP-5 TOOL-1 all schemas that are bad are told at once", async () => {
    const bad = { inputSchemaJson: "7", outputSchemaJson: "{" };
    const failure = await failureOf(
      start("echo", [
        { name: "one", ...bad },
        { name: "two", ...bad },
      ]),
    );
    expect(failure.message.match(/options\.function_tools\[\d\]\.(in|out)put_schema_json/g)).toHaveLength(4);
  });

  test("LOOP-5 LOOP-7 are not asked with arguments that do not fit: the model is told, as by any other tool, and the run goes on", async () => {
    const runId = await start("unfit", [weather]);
    await comesTo(runId, RunState.REQUIRES_ACTION);
    const [unfit, double] = await resultsOf(runId);
    expect(unfit?.result).toMatchObject({
      isError: true,
      outputJson: JSON.stringify({ error: 'Tool "weather" refuses its arguments: arguments.city: must be string' }),
    });
    expect(double?.result).toMatchObject({ isError: false });
    expect((await view(runId)).requiredCalls.map(({ callId }) => callId)).toEqual(["c"]);
    expect(await failureOf(submit(runId, { a: { degrees: 1 } }))).toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
    await submit(runId, { c: { degrees: 3.5 } });
    await comesTo(runId, RunState.COMPLETED);
    expect(await view(runId)).toMatchObject({ outputText: "3.5" });
  });

  test("LOOP-5 LOOP-8 answer what they promise: outputs that are not are refused by all their calls, and the others may come again", async () => {
    const runId = await start("both", [weather]);
    await comesTo(runId, RunState.REQUIRES_ACTION);
    const failure = await failureOf(submit(runId, { a: { degrees: "mild" }, b: 7 }));
    expect(failure).toMatchObject({ code: "invalid_argument", reason: "RESULT_INVALID" });
    expect(failure.metadata).toEqual({ call_id: "a", call_ids: "a b" });
    expect(failure.message).toBe(
      "the output of call a is refused: result.degrees: must be number; the output of call b is refused: result: must be object",
    );
    expect(await failureOf(submit(runId, { a: { degrees: 1 }, b: {} }))).toMatchObject({ metadata: { call_ids: "b" } });
    expect(await resultsOf(runId)).toEqual([]);
    await submit(runId, { a: { degrees: 1 } });
    const error = { callId: "b", outcome: { case: "error", value: "no station" } as const };
    await world.runs.submitOutputs({ runId, outputs: [error] });
    await comesTo(runId, RunState.COMPLETED);
    expect((await resultsOf(runId)).map(({ result }) => result?.outputJson)).toEqual([
      '{"degrees":1}',
      '{"error":"no station"}',
    ]);
  });

  test("LOOP-5 a refusal names its code, so that any client knows it", async () => {
    const error = await start("echo", [{ name: "other", inputSchemaJson: "7" }]).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: Code.InvalidArgument });
  });
});
