import { expect, test } from "vitest";
import { computedMs } from "#runtime/time/testing/machine-time.ts";
import { agent, catalogueOf, tool } from "../../testing/fakes/tools.ts";
import { createToolSet } from "../../tools/tool-set/tool-set.ts";
import type { Contexts } from "./contexts.ts";
import { toolsRevision } from "./listing.ts";

test("SEC-5 sessions that share their tools, of which some were switched, share the work of telling the lists' revision", async () => {
  const many = Array.from({ length: 500 }, (_, n) => tool(`t${n}`, { description: "x".repeat(8_192) }));
  const tools = createToolSet(agent({ use: ["*"] }), catalogueOf(...many), []);
  const contexts = { known: (id: string) => ({ tools, contextRevision: Number(id) }) } as unknown as Contexts;
  const revisionOf = (contextRevision: number) => toolsRevision(contexts, String(contextRevision));
  expect(revisionOf(1)).not.toBe(revisionOf(2));
  const tell = () => {
    for (let n = 0; n < 200; n += 1) expect(revisionOf(n % 2)).toBe(revisionOf(n % 2));
  };
  expect(await computedMs(tell)).toBeLessThan(500);
});
