import { expect, test } from "vitest";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import type { Attachments } from "../streams/attachments.ts";
import { createTurns } from "../streams/turns.ts";
import { createStores, openFollowing } from "../subscriptions.ts";

test("CTR-7 records of streams and declarations that cannot be read end no following, and stand for nobody", async () => {
  await using bus = await openTestBus();
  const { records, declared, late } = createStores(bus, "one");
  const kept: string[] = [];
  const attachments = { keepOnly: (sessionId: string) => void kept.push(sessionId) } as Partial<Attachments>;
  const faults: string[] = [];
  await using _following = await openFollowing({
    ...{ records, declared },
    attachments: attachments as Attachments,
    changes: new KeyedListeners(),
    turns: createTurns(),
    changesOfDeclarations: new KeyedListeners(),
    onFault: (fault) => void faults.push(fault),
  });
  const put = (key: string, value: Uint8Array | string) => bus.jetstream.publish(`$KV.${key}`, value);
  await put("toolbus_owners.caller.odd", "no json");
  const newer = { kind: "of a newer release", sessionId: "newer", graceMs: 1 };
  await put("toolbus_owners.caller.newer", JSON.stringify(newer));
  await put("toolbus_callers.declaration.odd", Uint8Array.of(0xff, 0xff));
  await put("toolbus_callers.late.odd.r", "{}");
  const stream = { streamId: "", graceMs: 0, instance: "one", attachmentId: "a" };
  await records.put("odd", { kind: "open", sessionId: "odd", streams: [stream] });
  await until(() => kept.includes("odd"), { what: "the record behind those that cannot be read" });
  expect(faults).toEqual([]);
  expect(await records.read("newer")).toBeUndefined();
  expect(await declared.read("odd")).toBeUndefined();
  expect(await late.read("odd.r")).toBeUndefined();
});
