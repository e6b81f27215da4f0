import { expect, test } from "vitest";
import { callThrough, openConnection } from "../testing/connection.ts";

const everything = new URL(
  "../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
  import.meta.url,
).pathname;
const server = { name: "all", command: process.execPath, args: [everything] };
const namesOf = (connection: ReturnType<typeof openConnection>) =>
  connection.offer().tools.map(({ tool }) => tool?.name);

test("ORCH-7 a server with resources has a tool that lists and reads them, and what results link to", async () => {
  await using connection = openConnection(server);
  const { output: lists } = await callThrough(connection, "read_resource");
  expect(lists).toMatchObject({
    resources: expect.arrayContaining([expect.objectContaining({ uri: expect.stringMatching(/features\.md$/) })]),
    resourceTemplates: expect.arrayContaining([
      expect.objectContaining({ uriTemplate: "demo://resource/dynamic/text/{resourceId}" }),
    ]),
  });
  const { result } = await callThrough(connection, "get-resource-links", { count: 2 });
  const [uri] = /demo:\/\/resource\/dynamic\/text\/\d+/.exec(result.outputJson) ?? [];
  expect((await callThrough(connection, "read_resource", { uri })).output).toMatch(/This is a plaintext resource/);
  const missing = await callThrough(connection, "read_resource", { uri: "demo://nothing" });
  expect(missing.result).toMatchObject({ isError: true, outputJson: expect.stringContaining("demo://nothing") });
  expect(namesOf(connection)).toContain("read_resource");
});

test("ORCH-7 its entry can omit that tool, or not allow it", async () => {
  await using omitting = openConnection({ ...server, omitResources: true });
  await using narrow = openConnection({ ...server, allowedTools: { names: ["echo"] } });
  await Promise.all([omitting, narrow].map((connection) => connection.settled(new AbortController().signal)));
  expect(namesOf(omitting)).not.toContain("read_resource");
  expect(namesOf(narrow)).toEqual(["echo"]);
  await expect(callThrough(omitting, "read_resource")).rejects.toMatchObject({ reason: "TOOL_NOT_FOUND" });
});
