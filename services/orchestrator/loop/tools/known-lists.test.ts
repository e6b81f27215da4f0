import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListToolsResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { createKnownLists } from "./known-lists.ts";

const list = (toolsRevision: string, ...names: string[]) =>
  create(ListToolsResponseSchema, { toolsRevision, tools: names.map((modelName) => ({ modelName })) });
const unchanged = (toolsRevision: string) => create(ListToolsResponseSchema, { toolsRevision, unchanged: true });

test("LOOP-1 a list that another session of the agent was told is not told again, and one that changed is", async () => {
  const lists = createKnownLists();
  const first = list("one", "double");
  expect(await lists.ask("helper", async () => first)).toBe(first);
  const asked: string[] = [];
  const again = await lists.ask("helper", async (known) => {
    asked.push(known);
    return unchanged(known);
  });
  expect(again).toBe(first);
  const second = list("two", "double", "treble");
  expect(await lists.ask("helper", async () => second)).toBe(second);
  await lists.ask("helper", async (known) => {
    asked.push(known);
    return unchanged(known);
  });
  await lists.ask("other", async (known) => {
    asked.push(known);
    return list("three");
  });
  expect(asked).toEqual(["one", "two", ""]);
});

test("a router that names no list is asked for the whole each time", async () => {
  const lists = createKnownLists();
  const asked: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    await lists.ask("helper", async (known) => {
      asked.push(known);
      return list("");
    });
  }
  expect(asked).toEqual(["", ""]);
});
