import { expect, test } from "vitest";
import { HostedRegistry, type RegisteredModule } from "./registry.ts";

interface Lived extends RegisteredModule {
  readonly life: string[];
}

function module(file: string, names: string[], fault?: Error): Lived {
  const life: string[] = [];
  const rest = { description: "", inputSchemaJson: "{}", outputSchemaJson: "", effect: "pure", timeoutMs: 0 } as const;
  return {
    file,
    life,
    tools: names.map((name) => ({ name, ...rest })),
    async initialize() {
      if (fault) throw fault;
      life.push("initialized");
    },
    async close() {
      life.push("shut down");
    },
  };
}

const names = (registry: HostedRegistry) => registry.list().map(({ tool }) => tool.name);

test("LOOP-9 tools are registered, found, listed, initialized and shut down", async () => {
  const registry = new HostedRegistry();
  const [second, first] = [module("b.ts", ["two"]), module("a.ts", ["one", "uno"])];
  await registry.initialize(second);
  await registry.initialize(first);
  expect(names(registry)).toEqual(["one", "uno", "two"]);
  expect(registry.get("two")?.module).toBe(second);
  expect(registry.get("three")).toBeUndefined();
  await registry.shutdown();
  expect([first.life, second.life]).toEqual([
    ["initialized", "shut down"],
    ["initialized", "shut down"],
  ]);
  expect(names(registry)).toEqual([]);
});

test("LOOP-9 a duplicate name is refused with both names, and nothing has changed; another version of the same file is no duplicate", async () => {
  const registry = new HostedRegistry();
  await registry.initialize(module("a.ts", ["one"]));
  const late = module("b.ts", ["two", "one"]);
  await expect(registry.initialize(late)).rejects.toThrow('the tool "one" is registered by a.ts already');
  expect([names(registry), late.life]).toEqual([["one"], []]);
  await registry.initialize(module("a.ts", ["one", "more"]));
  expect(names(registry)).toEqual(["one", "more"]);
});

test("LOOP-9 a module that cannot be initialized is not kept, and its names are free", async () => {
  const registry = new HostedRegistry();
  await expect(registry.initialize(module("a.ts", ["one"], new Error("no key")))).rejects.toThrow("no key");
  await registry.initialize(module("b.ts", ["one"]));
  expect(registry.get("one")?.module.file).toBe("b.ts");
});
