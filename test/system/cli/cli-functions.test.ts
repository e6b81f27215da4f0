// A run whose functions are executed by whoever started it with the command.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsAt } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let functions = "";
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-functions-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [agents, models] = [join(directory, "agents"), join(directory, "models")];
  for (const path of [agents, models]) await mkdir(path);
  const weather = (city: string) => ({ name: "weather", arguments: { city } });
  const turns = [{ calls: [weather("Rome"), weather("Oslo")] }, { text: "{{result.0}} and {{result.1}}" }];
  await writeFile(join(models, "traveller.json"), JSON.stringify({ turns }));
  const model = { provider: "scripted", model: "traveller" };
  await writeFile(join(agents, "traveller.json"), JSON.stringify({ name: "traveller", description: "", model }));
  functions = join(directory, "functions.json");
  const inputSchema = { type: "object", properties: { city: { type: "string" } } };
  const outputSchema = { type: "string" };
  await writeFile(functions, JSON.stringify([{ name: "weather", description: "Looks", inputSchema, outputSchema }]));
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_AGENTS: agents, TOOLBUS_SCRIPTS: models } }));
});
afterAll(() => stack.disposeAsync());

const { toolbus, toolbusWith } = commandsAt(() => suite.url);

describe("LOOP-5 functions of whoever runs an agent", () => {
  it("are answered line by line; what does not fit is asked for again, with the fault", async () => {
    const input = 'sun\n7\n"sun"\n! nobody knows\n';
    const ended = await toolbusWith({ input }, "run", "traveller", "go", "--functions", functions);
    expect(ended.stderr).toMatch(/weather \{"city":"Rome"\} \(.+\): its output as JSON, or ! and why it failed\n/);
    expect(ended.stderr.match(/the result of call \S+ is not JSON|must be string/g)).toHaveLength(2);
    expect(ended.stdout).toContain("waits for outputs of weather, weather\n");
    expect(ended.stdout).toMatch(/completed \(final_answer\)\n$/);
    expect(ended.exitCode).toBe(0);
  });

  it("may be answered from elsewhere: without a line left, the command says how, and exits with 1", async () => {
    const left = await toolbusWith({ input: '"sun"\n' }, "run", "traveller", "go", "--functions", functions);
    const [, runId = "", callId = ""] =
      /give it with: toolbus runs answer (\S+) (\S+) OUTPUT\n$/.exec(left.stderr) ?? [];
    expect([left.exitCode, callId]).toEqual([1, expect.stringMatching(/./)]);
    expect((await toolbus("answers")).stdout).toContain(`weather of traveller, since `);
    expect((await toolbus("answers")).stdout).toContain(`  toolbus runs answer ${runId} ${callId} 'JSON'\n`);
    expect(await toolbus("runs", "answer", runId, callId, '"snow"')).toMatchObject({ exitCode: 0 });
    const watched = await toolbus("watch", "run", runId);
    expect(watched).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/sun and snow\ncompleted/) });
  });

  it.each([
    ["[{}]", "[0].name: is missing"],
    ['[{"name":"f","parameters":{}}]', "[0].parameters: is none of name, description, inputSchema, outputSchema"],
    ["{}", "expected a list of functions"],
    ['[{"name":"f","inputSchema":{"type":7}}]', "options.function_tools[0].input_schema_json: "],
  ])("are refused as a fault of the command line: %s", async (text, fault) => {
    const file = `${functions}.bad`;
    await writeFile(file, text);
    const refused = await toolbus("run", "traveller", "go", "--functions", file);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(fault) });
  });
});
