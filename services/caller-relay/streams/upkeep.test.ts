import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createStores } from "../subscriptions.ts";
import { createAttachments } from "./attachments.ts";
import { upkeep } from "./upkeep.ts";

const dayMs = 24 * 3_600_000;
const lost = async () => "lost" as const;

test("CTR-1 an attached caller's declaration is written again before it is forgotten, and no other's", async () => {
  await using bus = await openTestBus();
  const { declared, records } = createStores(bus, "one");
  const attachments = createAttachments();
  attachments.open("attached");
  const declaration = create(CallerDeclarationSchema, { callerId: "app", tools: [{ name: "a" }] });
  const first = new Map<string, number>();
  for (const id of ["attached", "gone"]) first.set(id, await declared.put(id, declaration));
  const after = async (ms: number) => {
    const clock = { ...systemClock, now: () => Date.now() + ms };
    await upkeep({ attachments, declared, records, clock, stateOf: lost }, new AbortController().signal);
    return Promise.all([...first].map(async ([id, revision]) => (await declared.read(id))?.revision !== revision));
  };
  expect(await after(dayMs / 2)).toEqual([false, false]);
  expect(await after(2 * dayMs)).toEqual([true, false]);
  expect((await declared.read("attached"))?.value.tools).toMatchObject([{ name: "a" }]);
});

test("CTR-7 what is remembered of a caller goes when its grace is over, and that of others stays", async () => {
  await using bus = await openTestBus();
  const { declared, records } = createStores(bus, "one");
  const ended = { kind: "away", endedAtMs: Date.now() } as const;
  await records.put("over", { ...ended, sessionId: "over", graceMs: 1_000 });
  await records.put("waits", { ...ended, sessionId: "waits", graceMs: dayMs });
  const stream = { streamId: "", graceMs: 0, instance: "one", attachmentId: "1" };
  await records.put("here", { kind: "open", sessionId: "here", streams: [stream] });
  const clock = { ...systemClock, now: () => Date.now() + dayMs / 2 };
  const parts = {
    attachments: createAttachments(),
    declared,
    records,
    clock,
    stateOf: async () => "attached" as const,
  };
  await upkeep(parts, new AbortController().signal);
  expect([...(await records.keys())].sort()).toEqual(["here", "waits"]);
});

test("CTR-7 callers whose instance was killed leave no record of their streams, though nobody calls their tools again", async () => {
  await using bus = await openTestBus();
  const { declared, records } = createStores(bus, "one");
  const open = (sessionId: string, ...streams: { attachmentId: string; graceMs: number }[]) => {
    const of = streams.map((stream) => ({ streamId: "", instance: sessionId, ...stream }));
    return records.put(sessionId, { kind: "open", sessionId, streams: of });
  };
  await open("lost", { attachmentId: "1", graceMs: 0 });
  await open("awaited", { attachmentId: "2", graceMs: dayMs });
  await open("half", { attachmentId: "3", graceMs: 0 }, { attachmentId: "stands", graceMs: 0 });
  await open("frozen", { attachmentId: "4", graceMs: 0 });
  await open("returned", { attachmentId: "5", graceMs: 0 });
  const asked: string[] = [];
  const stateOf = async ({ attachmentId }: { attachmentId: string }) => {
    asked.push(attachmentId);
    if (attachmentId === "4") return "silent" as const;
    const isBack = attachmentId === "5" && asked.filter((id) => id === "5").length > 1;
    return attachmentId === "stands" || isBack ? ("attached" as const) : ("lost" as const);
  };
  const clock = { ...systemClock, delay: async () => {} };
  const parts = { attachments: createAttachments(), declared, records, clock, stateOf };
  await upkeep(parts, new AbortController().signal);
  expect([...(await records.keys())].sort()).toEqual(["awaited", "frozen", "half", "returned"]);
  expect(await records.read("lost")).toBeUndefined();
  expect((await records.read("awaited"))?.value).toMatchObject({ kind: "away", graceMs: dayMs });
  expect((await records.read("half"))?.value).toMatchObject({ streams: [{ attachmentId: "stands" }] });
});
