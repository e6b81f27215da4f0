import { afterAll, beforeAll, expect, test } from "vitest";
import { publicContract } from "../../gen/contract.ts";
import { messageOf, openWorkspace, protoFile, type Workspace } from "../../gen/testing/workspace.ts";
import { changedDefaults, defaultsIn } from "./defaults.ts";

test.each([
  ["Model responses in one run; default 10.", ["default 10"]],
  ["How many; 0 means 100, at most 1000.", ["0 means 100"]],
  ["Whether news starts a run. Absent means\n true.", ["absent means true"]],
  ["Which method; empty means `POST`.", ["empty means post"]],
  ["Where to begin (absent = now, 0 = all).", ["absent = now, 0 = all"]],
  ["Limits of a run; 0 or absent means the default.", ["0 or absent means the default"]],
  ["How deep; 0 forbids it; default 3.", ["0 forbids it", "default 3"]],
  ["Which may be called: empty allows all, `*` too; entries are names.", ["empty allows all, * too"]],
  ["Position in the run, contiguous from 0.", []],
  ["The error's text; a non-empty one wins.", []],
])("%j says the defaults %j", (comment, defaults) => {
  expect(defaultsIn(comment)).toEqual(defaults);
});

let workspace: Workspace;
beforeAll(async () => {
  workspace = await openWorkspace();
});
afterAll(() => workspace[Symbol.asyncDispose]());

async function contractSaying(comment: string) {
  const body = messageOf("Greeting", `  // ${comment}\n  uint32 times = 1;\n`);
  await workspace.write("proto/toolbus/greeting/v1/greeting.proto", protoFile("toolbus.greeting.v1", body));
  return publicContract(workspace.root);
}

test("a documented default that changes or goes is told with its field and its words", async () => {
  const released = await contractSaying("How often; 0 means 3.");
  expect(changedDefaults(released, await contractSaying("How often; 0 means 4."))).toEqual([
    'toolbus.greeting.v1.Greeting.times: "0 means 3" was said of it, now "0 means 4"',
  ]);
  expect(changedDefaults(released, await contractSaying("How often."))).toEqual([
    'toolbus.greeting.v1.Greeting.times: "0 means 3" was said of it, now nothing is',
  ]);
});

test("other words around a default, and a default that nobody documented before, are no change", async () => {
  const released = await contractSaying("How often; 0 means 3.");
  const reworded = await contractSaying("How many times it is said. 0 means 3; default for files.");
  expect(changedDefaults(released, reworded)).toEqual([]);
});

test("a release without comments cannot be compared, and that is said", async () => {
  const released = await contractSaying("How often; 0 means 3.");
  const bare = structuredClone(released);
  for (const file of bare.file) delete file.sourceCodeInfo;
  expect(() => changedDefaults(bare, released)).toThrow(/holds no comments/);
});
