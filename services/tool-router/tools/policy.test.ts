import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgentSourceSchema, type ToolUseSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AllowedToolsSchema, ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import { decideCall } from "../calls/admission.ts";
import { agent, catalogueOf, offer, tool } from "../testing/fakes/tools.ts";
import { createPolicy, narrow } from "./policy.ts";
import { resolve } from "./resolve.ts";
import { createToolSet, type ToolSet } from "./tool-set/tool-set.ts";

const use = (toolUse: { use?: string[]; allowed?: string[]; aliases?: Record<string, string> }) => {
  const { allowed, ...more } = toolUse;
  const names = allowed && { allowed: create(AllowedToolsSchema, { names: allowed }) };
  return createPolicy("tester", { use: [], aliases: {}, ...more, ...names });
};

describe("policy", () => {
  test("ORCH-2 without a list of allowed tools all in use are, and a star does the same", () => {
    for (const allowed of [undefined, ["*"]]) {
      const policy = use({ use: ["@files/*"], ...(allowed && { allowed }) });
      expect(policy.decide("@files/read").kind).toBe("permitted");
      expect(policy.decide("echo")).toMatchObject({ kind: "blocked", rule: "not in tools.use" });
    }
  });

  test("ORCH-2 an empty list of allowed tools allows none", () => {
    const policy = use({ use: ["*"], allowed: [] });
    expect(policy.decide("echo")).toMatchObject({ kind: "blocked", rule: "not in tools.allowed" });
  });

  test("ORCH-3 an alias or the real name in allowed permits both", () => {
    for (const allowed of [["read"], ["@files/read"], ["r"]]) {
      const policy = use({ use: ["@files/*"], allowed, aliases: { read: "@files/read", r: "read" } });
      expect(policy.decide("@files/read").kind).toBe("permitted");
      expect(policy.decide("@files/write")).toMatchObject({ rule: "not in tools.allowed" });
    }
  });

  test("ORCH-3 what touches this machine is in use by its very name alone, and a refusal says so", () => {
    const builtin = tool("fs_read", { executionType: ExecutionType.BUILTIN });
    const setWith = (use: string[]) =>
      createToolSet(agent({ use, aliases: { read: "fs_read" } }), catalogueOf(builtin), []);
    for (const use of [["*"], ["fs_*"], ["*read"], ["read"], ["@*/fs_read"]]) {
      const tools = setWith(use);
      for (const name of ["fs_read", "read"]) {
        expect(resolve(tools, name), use[0]).toEqual({ kind: "outside", reference: "fs_read" });
      }
    }
    for (const name of ["fs_read", "read"]) {
      const found = resolve(setWith(["*", "fs_read"]), name);
      expect(found).toMatchObject({ kind: "found", entry: { decision: { kind: "permitted" } } });
    }
    expect(setWith(["*"]).policy.decide("fs_read")).toMatchObject({
      message:
        'Agent "tester" may not call tool "fs_read": it is not named in tools.use, and no pattern reaches a tool of kind builtin.',
    });
  });

  test("ORCH-2 a refusal names agent, tool and rule", () => {
    expect(use({}).decide("echo")).toMatchObject({
      message: 'Agent "tester" may not call tool "echo": it is not in tools.use.',
    });
  });

  test("ORCH-2 a tool of a declared source that is not in use is outside, though nobody asks what that source has", () => {
    const sources = [create(AgentSourceSchema, { name: "files", provider: "mcp" })];
    const tools = createToolSet({ ...agent(), sources }, new Map(), []);
    expect(resolve(tools, "@files/read")).toEqual({ kind: "outside", reference: "@files/read" });
    expect(resolve(tools, "@other/read").kind).toBe("unknown");
  });

  test("LOOP-3 narrowing never permits what was blocked", () => {
    const blocked = use({}).decide("echo");
    expect(narrow(blocked, "echo", true)).toBe(blocked);
  });
});

const names = ["a", "b", "a__b", "read", "x_read", "send_message"];
const sources = ["a", "b", "a_"];
const anyName = fc.constantFrom(...names);
const references = fc.oneof(
  anyName,
  fc.tuple(fc.constantFrom(...sources), anyName).map(([source, name]) => `@${source}/${name}`),
);
const patterns = fc.oneof(references, fc.constantFrom("@a/*", "@*/a", "x_*", "a*"));
const aliases = fc.dictionary(fc.oneof(anyName, fc.constant("a__read")), fc.oneof(references, anyName), { maxKeys: 4 });
const toolUse = fc.record({
  use: fc.array(patterns, { maxLength: 4 }),
  allowed: fc.option(fc.record({ names: fc.array(patterns, { maxLength: 3 }) }), { nil: undefined }),
  aliases,
});
const offered = fc.dictionary(fc.constantFrom(...sources), fc.array(anyName, { maxLength: 4 }));
const caller = fc.uniqueArray(anyName, { maxLength: 3 });
const world = fc.record({ toolUse, offered, caller, catalogue: fc.uniqueArray(anyName, { maxLength: 4 }) });

function setOf({
  toolUse,
  offered,
  caller,
  catalogue,
}: typeof world extends fc.Arbitrary<infer T> ? T : never): ToolSet {
  const offers = [
    offer("mcp", offered),
    offer("caller", { "": caller }, { declared: new Map() }),
    offer("evil", { "": names }, { declared: new Map() }),
  ];
  return createToolSet(agent(toolUse), catalogueOf(...catalogue.map((name) => tool(name))), offers);
}

describe("no sequence of aliases, patterns and additions", () => {
  test("ORCH-2 lets a tool outside of use be called, by whatever name", () => {
    fc.assert(
      fc.property(world, fc.oneof(references, fc.string()), (one, name) => {
        const tools = setOf(one);
        const resolution = resolve(tools, name);
        if (resolution.kind !== "found") return;
        const { entry } = resolution;
        const isCallers = entry.standing === "caller";
        const isPermitted = decideCall(tools, entry, { name }).kind === "permitted";
        if (isPermitted && !isCallers) expect(tools.policy.isInUse(entry.reference)).toBe(true);
        if (isCallers) expect(entry.executor).toMatchObject({ kind: "provider", provider: "caller" });
      }),
      { numRuns: 1_000 },
    );
  });

  test("ORCH-4 makes a name mean two tools: each model name, alias and reference leads to one", () => {
    fc.assert(
      fc.property(world, (one) => {
        const tools = setOf(one);
        for (const [modelName, entry] of tools.byModelName) {
          const found = resolve(tools, modelName);
          expect(found).toMatchObject({ kind: "found", entry: { reference: entry.reference } });
        }
        for (const [alias, reference] of tools.policy.aliases) {
          const found = resolve(tools, alias);
          if (found.kind === "found") expect(found.entry.reference).toBe(reference);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("ORCH-4 changes a model name that stands, nor what it means", () => {
    fc.assert(
      fc.property(world, offered, caller, (one, more, callers) => {
        const before = setOf({ ...one, caller: [] });
        const after = setOf({ ...one, offered: { ...more, ...one.offered }, caller: callers });
        for (const [modelName, entry] of before.byModelName) {
          expect(after.byModelName.get(modelName)?.reference).toBe(entry.reference);
          expect(after.byModelName.get(modelName)?.executor).toMatchObject({ kind: entry.executor.kind });
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("TOOL-12 shadows a built-in: only spaces offers tools of these names", () => {
    fc.assert(
      fc.property(world, (one) => {
        const tools = setOf({ ...one, catalogue: one.catalogue.filter((name) => name !== "send_message") });
        expect(tools.byReference.get("send_message")).toBeUndefined();
      }),
    );
  });
});

describe("the built-ins of an agent", () => {
  const spaces = offer("spaces", { "": [...BUILT_IN_NAMES] });
  const builtInsOf = (tools: MessageInitShape<typeof ToolUseSchema>, ...more: Tool[]) => {
    const set = createToolSet(agent({ use: ["search"], ...tools }), catalogueOf(...more), [spaces]);
    return [...set.byReference.keys()].filter((name) => BUILT_IN_NAMES.has(name)).toSorted();
  };
  const search = tool("search");
  const memory = ["delete_goals", "delete_memories", "set_goals", "set_memories"];

  test("PROD-4 TOOL-12 are all where its file does not choose", () => {
    expect(builtInsOf({}, search)).toEqual([...BUILT_IN_NAMES].toSorted());
    expect(builtInsOf({ allowed: { names: ["search", "*", "set_*"] } }, search)).toEqual(
      [...BUILT_IN_NAMES].toSorted(),
    );
  });

  test("PROD-4 are those that its file chooses, by group and by name, and what reads large results", () => {
    expect(builtInsOf({ builtins: { names: ["memory"] } }, search)).toEqual([...memory, "read_result"].toSorted());
    expect(builtInsOf({ builtins: { names: ["skip", "get_plans"] } }, search)).toEqual([
      "get_plans",
      "read_result",
      "skip",
    ]);
    expect(builtInsOf({ builtins: { names: [] } }, search)).toEqual(["read_result"]);
    expect(builtInsOf({ builtins: { names: ["constructor", "search"] } }, search)).toEqual(["read_result"]);
  });

  test("PROD-4 are none where it chooses none and has no other tool, so that there is no result to read", () => {
    expect(builtInsOf({ builtins: { names: [] } })).toEqual([]);
  });

  test("PROD-4 are those that allowed names, where it names one, by name or alias", () => {
    expect(builtInsOf({ allowed: { names: ["search", "skip"] } }, search)).toEqual(["read_result", "skip"]);
    const aliases = { remember: "set_memories" };
    expect(builtInsOf({ allowed: { names: ["remember"] }, aliases }, search)).toEqual(["read_result", "set_memories"]);
    expect(builtInsOf({ builtins: { names: ["plans"] }, allowed: { names: ["skip"] } }, search)).toEqual([
      "read_result",
    ]);
  });

  test("PROD-4 that are not chosen are refused with the rule, and nothing else takes their names", () => {
    const own = createToolSet(agent({ use: ["*"], builtins: { names: [] } }), catalogueOf(search, tool("skip")), [
      offer("mcp", { "": ["skip"] }),
      spaces,
    ]);
    expect(resolve(own, "skip")).toEqual({ kind: "outside", reference: "skip" });
    expect(own.outside("skip")?.decision).toMatchObject({
      kind: "blocked",
      message:
        'Agent "tester" may not call tool "skip": it is a built-in that tools.builtins or tools.allowed does not choose.',
    });
  });
});

/** The least time of several rounds, which is not what a busy machine adds. */
function leastMs(rounds: number, work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    work();
    least = Math.min(least, performance.now() - startedAt);
  }
  return least;
}

test("deciding a call costs the same, however many tools there are", () => {
  const costAmong = (count: number) => {
    const all = Array.from({ length: count }, (_, n) => tool(`tool_${n}`));
    const tools = createToolSet(agent({ use: ["tool_*"], allowed: { names: ["tool_*"] } }), catalogueOf(...all), []);
    return leastMs(50, () => {
      for (let n = 0; n < 1_000; n++) {
        const resolution = resolve(tools, `tool_${n % count}`);
        if (resolution.kind === "found") decideCall(tools, resolution.entry, { name: "x" });
      }
    });
  };
  costAmong(10); // compiled by now
  expect(costAmong(1_000) / costAmong(10)).toBeLessThan(25); // a search through all of them would cost 100 times as much
});
