import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AgentSourceSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { BUILT_IN_NAMES } from "#runtime/agent-file/built-ins.ts";
import { decideCall } from "../calls/admission.ts";
import { agent, catalogueOf, offer, tool } from "../testing/fakes/tools.ts";
import { resolve } from "./resolve.ts";
import { createToolSet, type ToolSet } from "./tool-set/tool-set.ts";

/*
 * Histories of an agent: sources come, go and rename their tools, the catalogue grows, aliases and patterns change, while
 * somebody calls whatever name there is or ever was. What `use` means is judged by a reading of its own below, not by the
 * code under test.
 */

const words = [
  "a",
  "b",
  "ab",
  "a_b",
  "a__b",
  "read",
  "fs_read",
  "x_read",
  "send_message",
  "skip",
  "läs",
  "t".repeat(70),
];
const sourceNames = ["a", "b", "a_", "a.b", "files"];
const word = fc.constantFrom(...words);
const sourceName = fc.constantFrom(...sourceNames);
const reference = fc.oneof(
  word,
  fc.tuple(sourceName, word).map(([source, name]) => `@${source}/${name}`),
);
const pattern = fc.oneof(
  reference,
  fc.constantFrom("*", "@a/*", "@*/read", "a*", "fs_*", "*read", "@a*/*", "@files/x_*"),
);

type Step =
  | { kind: "offer"; source: string; tools: string[] }
  | { kind: "rename"; source: string; from: string; to: string }
  | { kind: "withdraw"; source: string }
  | { kind: "own offer"; tools: string[] }
  | { kind: "add to the catalogue"; name: string }
  | { kind: "alias"; alias: string; target: string }
  | { kind: "use"; pattern: string }
  | { kind: "allow"; pattern: string };

const tools = fc.uniqueArray(word, { maxLength: 4 });
const addition: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("offer" as const), source: sourceName, tools }),
  fc.record({ kind: fc.constant("own offer" as const), tools }),
);
const change: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("rename" as const), source: sourceName, from: word, to: word }),
  fc.record({ kind: fc.constant("withdraw" as const), source: sourceName }),
  fc.record({ kind: fc.constant("add to the catalogue" as const), name: word }),
);
const configuration: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("alias" as const), alias: fc.oneof(word, fc.constant("a__read")), target: reference }),
  fc.record({ kind: fc.constant("use" as const), pattern }),
  fc.record({ kind: fc.constant("allow" as const), pattern }),
);

interface World {
  offered: Map<string, string[]>;
  own: string[];
  catalogue: Set<string>;
  aliases: Record<string, string>;
  use: string[];
  allowed: string[];
}

function emptyWorld(): World {
  return { offered: new Map(), own: [], catalogue: new Set(["read"]), aliases: {}, use: [], allowed: [] };
}

function apply(world: World, step: Step): void {
  if (step.kind === "offer") world.offered.set(step.source, [...(world.offered.get(step.source) ?? []), ...step.tools]);
  if (step.kind === "withdraw") world.offered.delete(step.source);
  if (step.kind === "own offer") world.own.push(...step.tools);
  if (step.kind === "add to the catalogue") world.catalogue.add(step.name);
  if (step.kind === "alias") world.aliases[step.alias] = step.target;
  if (step.kind === "use") world.use.push(step.pattern);
  if (step.kind === "allow") world.allowed.push(step.pattern);
  if (step.kind === "rename") {
    const standing = world.offered.get(step.source) ?? [];
    world.offered.set(
      step.source,
      standing.map((name) => (name === step.from ? step.to : name)),
    );
  }
}

function toolSetOf(world: World): ToolSet {
  const sources = [...world.offered.keys()].map((name) => create(AgentSourceSchema, { name, provider: "mcp" }));
  const one = agent({
    use: world.use,
    ...(world.allowed.length > 0 && { allowed: { names: world.allowed } }),
    aliases: world.aliases,
  });
  return createToolSet({ ...one, sources }, catalogueOf(...[...world.catalogue].map(entryNamed)), [
    offer("mcp", Object.fromEntries(world.offered)),
    offer("third", { "": world.own }, { declared: new Map() }),
  ]);
}

/** The catalogue's `fs_` tools are of kind builtin. */
function entryNamed(name: string) {
  return tool(name, name.startsWith("fs_") ? { executionType: ExecutionType.BUILTIN } : {});
}

/** ORCH-3: a name of that kind has to stand in the list as it is, whoever offers a tool of that name. */
function isUsed({ use, catalogue }: World, name: string): boolean {
  return catalogue.has(name) && name.startsWith("fs_") ? use.some((entry) => entry === name) : lets(use, name);
}

/** What a list of patterns lets through, read letter by letter. */
function lets(patterns: readonly string[], name: string): boolean {
  return patterns.some((entry) => {
    if (entry === "*") return true;
    const isScoped = (text: string) => /^@[^/]+\/./s.test(text);
    if (isScoped(entry) !== isScoped(name)) return false;
    if (!isScoped(entry)) return fits(entry, name);
    const [at, other] = [entry.indexOf("/"), name.indexOf("/")];
    return fits(entry.slice(0, at), name.slice(0, other)) && fits(entry.slice(at), name.slice(other));
  });
}

function fits(glob: string, text: string): boolean {
  if (glob === "") return text === "";
  if (glob[0] === "*") return fits(glob.slice(1), text) || (text !== "" && fits(glob, text.slice(1)));
  return glob[0] === text[0] && fits(glob.slice(1), text.slice(1));
}

/** Every name that could mean something to somebody. */
function namesIn(world: World, set: ToolSet): string[] {
  const references = [...world.offered].flatMap(([source, names]) => names.map((name) => `@${source}/${name}`));
  return [...references, ...words, ...Object.keys(world.aliases), ...set.byModelName.keys()];
}

test("ORCH-2 ORCH-3 no history of aliases, patterns, renames and additions lets a tool outside of use be called", () => {
  const history = fc.array(fc.oneof(addition, change, configuration), { minLength: 1, maxLength: 12 });
  const narrowing = fc.oneof(
    { weight: 4, arbitrary: fc.constant<string[] | undefined>(undefined) },
    fc.array(reference, { maxLength: 2 }),
  );
  let callable = 0;
  fc.assert(
    fc.property(history, narrowing, (steps, names) => {
      const world = emptyWorld();
      for (const step of steps) {
        apply(world, step);
        const set = toolSetOf(world);
        for (const name of namesIn(world, set)) {
          const found = resolve(set, name);
          if (found.kind !== "found") continue;
          if (decideCall(set, found.entry, { name, allowedTools: names && { names } }).kind === "blocked") continue;
          callable += 1;
          expect({ name, isInUse: isUsed(world, found.entry.reference) }).toEqual({ name, isInUse: true });
        }
      }
    }),
    { numRuns: 1_500 },
  );
  expect(callable).toBeGreaterThan(1_000); // else it would show nothing
});

test("ORCH-4 TOOL-12 in no history does a name mean two tools, fit no model, or shadow a tool of every agent", () => {
  const history = fc.array(fc.oneof(addition, change, configuration), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(history, (steps) => {
      const world = emptyWorld();
      for (const step of steps) {
        apply(world, step);
        const set = toolSetOf(world);
        expect(set.byModelName.size).toBe(set.byReference.size);
        for (const [name, entry] of set.byModelName) {
          expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
          expect(BUILT_IN_NAMES.has(name)).toBe(false);
          expect(resolve(set, name)).toMatchObject({ kind: "found", entry: { reference: entry.reference } });
        }
        for (const name of BUILT_IN_NAMES) expect(resolve(set, name).kind).not.toBe("found");
      }
    }),
    { numRuns: 400 },
  );
});

test("ORCH-4 in no history of additions does a name that stands change, or what it means", () => {
  const first = fc.array(fc.oneof(addition, configuration), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(first, fc.array(addition, { minLength: 1, maxLength: 6 }), (before, additions) => {
      const world = emptyWorld();
      world.use.push("*");
      for (const step of before) apply(world, step);
      const standing = new Map<string, string>();
      const meanings = (set: ToolSet) =>
        [...set.byModelName].map(
          ([name, { reference: real, executor }]) => [name, JSON.stringify([real, executor])] as const,
        );
      for (const [name, meaning] of meanings(toolSetOf(world))) standing.set(name, meaning);
      for (const step of additions) {
        apply(world, step);
        const now = new Map(meanings(toolSetOf(world)));
        for (const [name, meaning] of standing) expect([name, now.get(name)]).toEqual([name, meaning]);
        for (const [name, meaning] of now) standing.set(name, meaning);
      }
    }),
    { numRuns: 400 },
  );
});
