import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import type { Rooms } from "./built-in.ts";
import { builtInTools, callBuiltIn } from "./built-ins.ts";

describe("the built-in tools", () => {
  test("TOOL-12 are these, none of them visible", () => {
    expect(builtInTools.map(({ name }) => name).toSorted()).toEqual(
      "delete_goals delete_memories delete_plans enter_space get_plans leave_space read_messages read_result send_message set_goals set_memories set_plans skip".split(
        " ",
      ),
    );
    expect(new Set(builtInTools.map(({ name }) => name))).toEqual(BUILT_IN_NAMES);
    for (const tool of builtInTools) {
      expect([tool.executionType, tool.visible]).toEqual([ExecutionType.BUILTIN, false]);
      expect(tool.effect).not.toBe(Effect.UNSPECIFIED);
    }
  });

  test.each(builtInTools)("$name says what it does and what it takes", (tool) => {
    const schema = JSON.parse(tool.inputSchemaJson);
    expect(schema).toMatchObject({ type: "object", additionalProperties: false });
    expect(tool.description.length).toBeGreaterThan(40);
    const validate = new Ajv2020().compile(schema);
    expect(validate({ something: "else" })).toBe(false);
    expect(schema.required ?? []).not.toContain("offset"); // what has a default may be left out
  });

  test("TOOL-12 skip is the one that ends the run, and needs nothing but a session and an agent", async () => {
    const call = { callId: "c", sessionId: "s", agent: "a", principal: "", isByOwner: true };
    const rooms = {} as Rooms; // skip uses none
    expect(await callBuiltIn(rooms, "skip", call, '{"reason":"not for me"}')).toMatchObject({
      outputJson: '{"skipped":true}',
      endsRun: true,
      isError: false,
    });
    await expect(callBuiltIn(rooms, "skip", { ...call, agent: "" }, "{}")).rejects.toThrow("belong to an agent");
    expect(await callBuiltIn(rooms, "skip", call, '{"why":1}')).toMatchObject({ isError: true, endsRun: false });
  });

  test.each(["2027-02-29T09:00:00Z", "2027-02-30T09:00:00+02:00", "2027-04-31T23:30-05:00", "2100-02-29T00:00:00.5Z"])(
    "TOOL-12 a plan for %s, a day that does not exist, is refused",
    async (at) => {
      const call = { callId: "c", sessionId: "s", agent: "a", principal: "", isByOwner: true };
      const rooms = { memory: { set: async () => [] }, clock: { now: () => 0 } } as unknown as Rooms;
      const plan = (at: string) =>
        callBuiltIn(rooms, "set_plans", call, JSON.stringify({ entries: [{ key: "k", text: "t", at }] }));
      expect((await plan(at)).outputJson).toContain(`there is no such day: ${at}`);
      expect((await plan("2028-02-29T23:30:00-05:00")).isError, "a leap day, and the next one in UTC").toBe(false);
    },
  );

  test("KIND-1 only enter_space and read_messages name a space", () => {
    const naming = builtInTools.filter((tool) => "space_id" in (JSON.parse(tool.inputSchemaJson).properties ?? {}));
    expect(naming.map(({ name }) => name)).toEqual(["enter_space", "read_messages"]);
  });
});
