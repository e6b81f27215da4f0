import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import type { Attachments } from "../streams/attachments.ts";
import { createChanges } from "../streams/changes.ts";
import { createStores, openHearing } from "../subscriptions.ts";

test("CTR-7 records of streams and declarations that cannot be read end no following, and stand for nobody", async () => {
  await using bus = await openTestBus();
  const { records, declarations, late } = createStores(bus, "one");
  const kept: string[] = [];
  const attachments = { keepOnly: (sessionId: string) => void kept.push(sessionId) } as Partial<Attachments>;
  const errors: unknown[] = [];
  const hearing = {
    attachments: attachments as Attachments,
    changes: createChanges(),
    changesOfDeclarations: createChanges(),
    onError: (error: unknown) => errors.push(error),
  };
  await using _hearing = await openHearing(bus, hearing);
  const owners = await bus.keyValue("toolbus_owners");
  const callers = await bus.keyValue("toolbus_callers");
  await owners.put("caller.odd", "no json");
  await owners.put("caller.newer", JSON.stringify({ kind: "of a newer release", sessionId: "newer", graceMs: 1 }));
  await callers.put("declaration.odd", Uint8Array.of(0xff, 0xff));
  await callers.put("late.odd.r", "{}");
  await records.put({ kind: "attached", sessionId: "odd", graceMs: 0, instance: "one", attachmentId: "a" });
  await until(() => kept.includes("odd"), { what: "the record behind those that cannot be read" });
  expect(errors).toEqual([]);
  expect(await records.read("newer")).toBeUndefined();
  expect(await declarations.read("odd")).toBeUndefined();
  expect(await late.read("odd", "r")).toBeUndefined();
});
