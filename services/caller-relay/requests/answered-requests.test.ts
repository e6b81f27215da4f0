import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type AnsweredRequest, AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import type { Submission } from "#runtime/results/submission.ts";
import { keepAnswer, recordAnswer, recordedAnswer, resultOf } from "./answered-requests.ts";

const key = "s.r";
const saying = (value: string, submissionId = ""): Submission => ({
  submissionId,
  outcome: { case: "resultJson", value },
});
const openStores = () => ({
  answered: createMemoryBucket<AnsweredRequest>(),
  results: createMemoryBucket<ToolResult>(),
});
const told = async (stores: ReturnType<typeof openStores>) => (await recordedAnswer(stores, key, true))?.outputJson;

test("CTR-4 of two answers to a request that nobody holds the first is told to the next holder", async () => {
  const stores = openStores();
  expect(await keepAnswer(stores, key, saying("1", "one"))).toBe(true);
  expect(await keepAnswer(stores, key, saying("2", "two"))).toBe(false);
  expect(await told(stores)).toBe("1");
});

test("CTR-4 of two instances that hold a call, the first to record an answer has it, also one without a submission id", async () => {
  const stores = openStores();
  expect(await recordAnswer(stores, key, saying("1"), false)).toMatchObject({ isNew: true });
  const { record, isNew } = await recordAnswer(stores, key, saying("2"), true);
  expect(isNew).toBe(false);
  expect((await resultOf(stores, key, record)).outputJson).toBe("1");
  expect(await told(stores)).toBe("1");
});

test("CTR-4 an answer of who took a call over stands when its first holder turns out to live", async () => {
  const stores = openStores();
  await recordAnswer(stores, key, saying("1"), true);
  expect((await recordedAnswer(stores, key, false))?.outputJson, "for the first holder, too").toBe("1");
  expect(await recordAnswer(stores, key, saying("2"), false)).toMatchObject({ isNew: false });
  expect(await told(stores)).toBe("1");
});

test("KIND-1 an answer to an earlier call of the same id gives way to that of the next one", async () => {
  const stores = openStores();
  await recordAnswer(stores, key, saying("1"), false);
  expect(await recordAnswer(stores, key, saying("2"), false)).toMatchObject({ isNew: true });
  expect(await told(stores)).toBe("2");
});

test("CTR-4 an end without an answer gives way to who holds the call again, and to nobody else", async () => {
  const stores = openStores();
  await stores.answered.create(key, create(AnsweredRequestSchema));
  expect(await keepAnswer(stores, key, saying("1"))).toBe(false);
  expect(await told(stores)).toBeUndefined();
  expect(await recordAnswer(stores, key, saying("2"), false)).toMatchObject({ isNew: true });
  expect(await told(stores)).toBe("2");
});

test("CTR-4 an answer that could not be recorded as a whole has not won", async () => {
  const stores = openStores();
  const results = { ...stores.results, put: () => Promise.reject(new Error("no store")) };
  await expect(recordAnswer({ ...stores, results }, key, saying("1"), false)).rejects.toThrow("no store");
  expect(await recordAnswer(stores, key, saying("2"), false)).toMatchObject({ isNew: true });
  expect(await told(stores)).toBe("2");
});

test("CTR-7 what an answer said that is not kept is told to be lost", async () => {
  const stores = openStores();
  await keepAnswer(stores, key, saying("1"));
  const results = createMemoryBucket<ToolResult>();
  await expect(recordedAnswer({ ...stores, results }, key, true)).rejects.toMatchObject({ code: "data_loss" });
});
