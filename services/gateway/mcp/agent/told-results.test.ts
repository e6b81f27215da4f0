// A call that has its result is told by it, whatever else cannot be read by then: who is told a fault makes the call again.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import type { CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { callTool, openTestDoor } from "../http/testing/door.ts";

type Result = MessageInitShape<typeof CallToolResultSchema>;

const stored = (type: string) => ({ blockJson: JSON.stringify({ type }), storedReference: "r1", size: 5_000n });
const ofBlocks = (type: string): Result => ({ content: [stored(type)], outputJson: jsonOfBlocks([stored(type)]) });

/** Calls the tool at a door before a router that has nothing but its result. */
async function answerOf(result: Result): Promise<string> {
  const away = () => {
    throw connectError("unavailable", "the bus does not answer", { reason: "BUS_UNAVAILABLE" });
  };
  await using door = await openTestDoor({
    tools: {
      async *callTool() {
        yield { event: { case: "result", value: result } };
      },
      listTools: away,
    },
    calls: { readResult: away, getToolCall: away },
  });
  return await callTool(door.url, "draw");
}

it.each([
  ["a picture that cannot be read", ofBlocks("image"), /image of 5000 bytes… .*toolbus:\/\/results\/r1/],
  ["a text that cannot be read", ofBlocks("text"), /text of 5000 bytes… .*toolbus:\/\/results\/r1/],
  ["a long text, and no list of tools", { outputJson: JSON.stringify("x".repeat(70_000)) }, /"text":"x{70000}"/],
])("LOOP-14 a result with %s is told as one", async (_, result, told) => {
  const answer = await answerOf(result);
  expect(answer).toMatch(told);
  expect(answer).not.toMatch(/"error":|"isError":true/);
});

it("LOOP-14 a stored result whose tool may have a schema, as no list says, is told as one that a client takes", async () => {
  const answer = await answerOf({ outputJson: '{"beginning":"abc"}', storedReference: "r1" });
  expect(answer).toMatch(/"text":"abc… /);
  expect(answer, "a client that knows of a schema refuses the result otherwise, and calls again").toMatch(
    /"isError":true/,
  );
  expect(answer).not.toMatch(/"error":/);
});
