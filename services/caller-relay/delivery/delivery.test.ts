import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CallerToolCancellationReason, CallerToolRequestSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { type AnsweredRequest, AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Submission } from "#runtime/results/submission.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { keepAnswer } from "../requests/answered-requests.ts";
import type { LateRequest } from "../requests/late-requests.ts";
import { createRequests, keyOfRequest } from "../requests/requests.ts";
import { attachCaller } from "../streams/attaching.ts";
import type { Attachment } from "../streams/attachment.ts";
import { createAttachments } from "../streams/attachments.ts";
import type { StreamRecord } from "../streams/stream-record.ts";
import { createTurns } from "../streams/turns.ts";
import { reasonOfCancellation } from "../subscriptions/peers.ts";
import { type DeliveryParts, deliver, type HeldCall } from "./delivery.ts";

/** A relay of one instance, whose records stand in memory and whose time stands still. */
function openRelay() {
  const clock = createManualClock();
  const attachments = createAttachments();
  const changes = new KeyedListeners();
  const requests = createRequests();
  const late = createMemoryBucket<LateRequest>();
  const answered = createMemoryBucket<AnsweredRequest>();
  const results = createMemoryBucket<ToolResult>();
  const records = createMemoryBucket<StreamRecord>({
    onWrite({ key, value, revision }) {
      if (value.kind === "open") attachments.keepOnly(key, value.streams, revision);
      changes.notify(key);
    },
  });
  const parts: DeliveryParts = {
    carry: (stream, request, by) => attachments.carry(stream.attachmentId, request, { ...by, holder: "here" }),
    turns: createTurns(),
    stopping: new AbortController().signal,
    cancel: async ({ attachmentId }, requestId, why) =>
      attachments.find(attachmentId)?.cancel(requestId, reasonOfCancellation(why), "here"),
    holders: { announce: () => ({ [Symbol.dispose]() {} }), locate: async () => undefined },
    ...{ records, changes, requests, late, answered, results, clock },
  };
  return {
    ...{ clock, requests, records, late, answered, results },
    attach: (graceMs = 0, streamId = "") =>
      attachCaller({ attachments, records, clock, instance: "here", stateOf: async () => "attached" }, "s", {
        streamId,
        graceMs,
      }),
    call: (requestId: string, signal = new AbortController().signal, more: Partial<HeldCall> = {}) => {
      const request = create(CallerToolRequestSchema, { requestId, sessionId: "s", tool: "ask" });
      const call: HeldCall = {
        request,
        agent: "a",
        tool: "app_ask",
        expiresAtMs: clock.now() + 60_000,
        timeoutMs: 60_000,
        isCapped: false,
        isResumed: false,
        streams: [],
        tell: () => undefined,
        ...more,
      };
      return deliver(parts, call, signal);
    },
    answer: (requestId: string, resultJson: string) =>
      requests.answer(keyOfRequest("s", requestId), saying(resultJson), unrecorded),
  };
}

const saying = (value: string): Submission => ({ submissionId: "", outcome: { case: "resultJson", value } });
const opened = { onProgress: () => {}, takenOver: false };
const unrecorded = async () => undefined;
const nextOf = async (attachment: Attachment) =>
  (await attachment.events[Symbol.asyncIterator]().next()).value?.value?.requestId;

describe("a call that is held", () => {
  test("CTR-6 ends after its time with an error that names tool and time, and leaves a trace for a late answer", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    const result = relay.call("r");
    expect(await nextOf(attachment)).toBe("r");
    await relay.clock.advance(59_999);
    expect(await relay.late.keys()).toEqual(new Set());
    await relay.clock.advance(1);
    expect(JSON.parse((await result).outputJson)).toEqual({ error: 'Caller tool "app_ask" timed out after 60000ms' });
    expect((await relay.late.read("s.r"))?.value).toEqual({ agent: "a", tool: "app_ask" });
    expect(await relay.answer("r", "1")).toBe("unknown");
  });

  test("CTR-6 an answer that comes while the trace is being written waits for it", async () => {
    const requests = createRequests();
    using open = requests.open("r", opened);
    const written = Promise.withResolvers<void>();
    const expiring = open.expire(() => written.promise);
    let reception: string | undefined;
    const answering = requests.answer("r", saying("1"), unrecorded).then((told) => {
      reception = told;
    });
    await Promise.resolve();
    expect(reception).toBeUndefined();
    written.resolve();
    expect(await expiring).toBe(true);
    await answering;
    expect(reception).toBe("late");
  });

  test("CTR-6 an answer that is quicker than the end of the time wins", async () => {
    const requests = createRequests();
    using open = requests.open("r", opened);
    expect(await requests.answer("r", saying("1"), unrecorded)).toBe("won");
    expect(await open.expire(async () => expect.unreachable())).toBe(false);
    expect((await open.answered).outputJson).toBe("1");
  });

  test("CTR-4 an answer that cannot be recorded has not won: the next one is taken, and a time that ended meanwhile has ended", async () => {
    const requests = createRequests();
    using open = requests.open("r", opened);
    const failing = Promise.withResolvers<undefined>();
    const first = requests.answer("r", { ...saying("1"), submissionId: "x" }, () => failing.promise);
    const second = requests.answer("r", saying("2"), unrecorded);
    failing.reject(new Error("no store"));
    await expect(first).rejects.toThrow("no store");
    expect(await second).toBe("won");
    expect((await open.answered).outputJson).toBe("2");

    using other = requests.open("q", opened);
    const lost = requests.answer("q", { ...saying("1"), submissionId: "x" }, () =>
      Promise.reject(new Error("no store")),
    );
    const expiring = other.expire(unrecorded);
    await expect(lost).rejects.toThrow("no store");
    expect(await expiring).toBe(true);
  });

  test("CTR-7 without a grace ends with its stream, with one waits no longer than that", async () => {
    const relay = openRelay();
    for (const graceMs of [0, 3_000]) {
      const caller = await relay.attach(graceMs);
      const result = relay.call(`r${graceMs}`);
      await nextOf(caller.attachment);
      await caller[Symbol.asyncDispose]();
      if (graceMs > 0) {
        await until(() => relay.clock.sleeping === 2);
        await relay.clock.advance(graceMs - 1);
        expect(relay.clock.sleeping).toBe(2);
        await relay.clock.advance(1);
      }
      expect((await result).outputJson).toContain("Connection lost");
      expect(await relay.records.keys()).toEqual(new Set());
      expect(relay.clock.sleeping).toBe(0);
    }
  });

  test("CTR-7 is sent again, the same, to a caller that comes back in the last moment of the grace", async () => {
    const relay = openRelay();
    const caller = await relay.attach(3_000);
    const result = relay.call("r");
    await nextOf(caller.attachment);
    await caller[Symbol.asyncDispose]();
    await until(() => relay.clock.sleeping === 2);
    await relay.clock.advance(2_999);
    const back = await relay.attach();
    expect(await nextOf(back.attachment)).toBe("r");
    relay.answer("r", '"back"');
    expect((await result).outputJson).toBe('"back"');
  });

  test("CTR-7 whose recorded stream is nowhere finds that out and says so in the record", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    attachment.end("detached");
    await attachment.ended;
    expect((await relay.call("r")).outputJson).toContain("no caller is attached to session s");
    expect(await relay.records.keys()).toEqual(new Set());
  });

  test("CTR-7 whose stream has moved since the call came is sent by the one that the record names by then", async () => {
    const relay = openRelay();
    const gone = { instance: "here", attachmentId: "gone", streamId: "", graceMs: 0 };
    const { attachment } = await relay.attach();
    const result = relay.call("r", new AbortController().signal, { streams: [gone] });
    expect(await nextOf(attachment)).toBe("r");
    await relay.answer("r", '"there"');
    expect((await result).outputJson).toBe('"there"');
  });

  test("CTR-7 is sent once its caller's grace is told, and on its way", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach(5_000);
    const told = Promise.withResolvers<void>();
    const events: unknown[] = [];
    const result = relay.call("r", new AbortController().signal, {
      tell(event) {
        events.push(event.case);
        return told.promise;
      },
    });
    await until(() => events.length > 0);
    const request = nextOf(attachment);
    expect(await Promise.race([request, new Promise((resolve) => setImmediate(resolve))])).toBeUndefined();
    told.resolve();
    expect(await request).toBe("r");
    await relay.answer("r", "1");
    expect((await result).outputJson).toBe("1");
    expect(events).toEqual(["held"]);
  });

  test("CTR-7 moves to the newer of two streams of one name, whichever of them is told first", async () => {
    const relay = openRelay();
    const older = await relay.attach(0, "window");
    const result = relay.call("r");
    await nextOf(older.attachment);
    const newer = await relay.attach(0, "window");
    expect(await older.attachment.ended).toBe("replaced");
    expect(await nextOf(newer.attachment)).toBe("r");
    await older[Symbol.asyncDispose]();
    expect(await relay.records.keys()).toEqual(new Set(["s"]));
    relay.answer("r", "1");
    await result;
  });

  test("a call that is given up takes its request back, and leaves nothing behind", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    const givingUp = new AbortController();
    const given = relay.call("given up", givingUp.signal);
    await until(() => relay.clock.sleeping === 1);
    givingUp.abort(new Error("enough"));
    await expect(given).rejects.toThrow("enough");
    const result = relay.call("other");
    expect(await nextOf(attachment)).toBe("other");
    relay.answer("other", "1");
    await result;
    expect([relay.clock.sleeping, (await relay.late.keys()).size]).toEqual([0, 0]);
  });

  test("CTR-7 a call that was taken over and is not answered here gives what the holder before took for its answer", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    attachment.emit(create(CallerToolRequestSchema, { requestId: "r" }), "frozen");
    const result = relay.call("r", new AbortController().signal, { isResumed: true });
    await until(() => relay.clock.sleeping === 1);
    await keepAnswer(relay, "s.r", saying("1"));
    await relay.clock.advance(60_000);
    expect((await result).outputJson).toBe("1");
  });

  test("CTR-4 a first holder that was frozen past the call's time gives the answer that its successor took, and takes no late one", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    const result = relay.call("r");
    expect(await nextOf(attachment)).toBe("r");
    await keepAnswer(relay, "s.r", saying("1"));
    await relay.clock.advance(60_000);
    expect((await result).outputJson).toBe("1");
    expect([(await relay.late.keys()).size, (await relay.answered.keys()).size]).toEqual([0, 1]);
  });

  test("CTR-7 a call that ends without an answer leaves standing what another holder recorded", async () => {
    const relay = openRelay();
    await relay.attach();
    const givingUp = new AbortController();
    const given = relay.call("r", givingUp.signal);
    await until(() => relay.clock.sleeping === 1);
    await relay.answered.put("s.r", create(AnsweredRequestSchema, { submissionId: "won" }));
    givingUp.abort("enough");
    await expect(given).rejects.toBe("enough");
    expect((await relay.answered.read("s.r"))?.value.submissionId).toBe("won");
  });

  test("LOOP-15 a call that is given up before its time is told to the caller once its answer is refused", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    const givingUp = new AbortController();
    const given = relay.call("given up", givingUp.signal);
    expect(await nextOf(attachment)).toBe("given up");
    givingUp.abort("enough");
    await expect(given).rejects.toBe("enough");
    expect((await attachment.events[Symbol.asyncIterator]().next()).value).toEqual({
      case: "canceled",
      value: { requestId: "given up", reason: CallerToolCancellationReason.CANCELED },
    });
    expect(await relay.answer("given up", "1")).toBe("unknown");
  });

  test("LOOP-15 CTR-6 a call that is given up at its own time is not canceled: its answer is late", async () => {
    const relay = openRelay();
    const { attachment } = await relay.attach();
    const givingUp = new AbortController();
    const given = relay.call("given up", givingUp.signal);
    expect(await nextOf(attachment)).toBe("given up");
    await relay.clock.advance(59_950);
    givingUp.abort("enough");
    await expect(given).rejects.toBe("enough");
    expect(await relay.late.read("s.given up")).toBeDefined();
    void relay.call("other");
    expect(await nextOf(attachment)).toBe("other");
  });

  test.each(["by the relay", "by who made it"])(
    "LOOP-15 a call whose run has no time left, as is seen %s, is canceled",
    async (by) => {
      const relay = openRelay();
      const { attachment } = await relay.attach();
      const givingUp = new AbortController();
      const given = relay.call("r", givingUp.signal, { isCapped: true }).catch(() => "given up");
      expect(await nextOf(attachment)).toBe("r");
      await relay.clock.advance(by === "by the relay" ? 60_000 : 59_950);
      if (by === "by who made it") givingUp.abort("enough");
      await given;
      const { value } = await attachment.events[Symbol.asyncIterator]().next();
      expect(value).toMatchObject({ case: "canceled", value: { requestId: "r" } });
      expect([await relay.answer("r", "1"), (await relay.late.keys()).size]).toEqual(["unknown", 0]);
    },
  );

  test.each([
    [new ConnectError("too long", Code.DeadlineExceeded), CallerToolCancellationReason.DEADLINE],
    [
      new Failure("deadline_exceeded", "too long", { reason: "DEADLINE_EXCEEDED" }),
      CallerToolCancellationReason.DEADLINE,
    ],
    [new ConnectError("gone", Code.Canceled), CallerToolCancellationReason.CANCELED],
    [new Error("gone"), CallerToolCancellationReason.CANCELED],
  ])("LOOP-15 what ended as %s is told as %j", (why, reason) => {
    expect(reasonOfCancellation(why)).toBe(reason);
  });

  test("a request that the stream carries already is not sent twice, and no more than a stream can take", async () => {
    const attachment = createAttachments().open("s");
    const request = (requestId: string) => create(CallerToolRequestSchema, { requestId });
    attachment.emit(request("0"), "here");
    expect(() => attachment.emit(request("0"), "here")).toThrow(/on its way/);
    for (let index = 1; index < 1_000; index++) attachment.emit(request(`${index}`), "here");
    expect(() => attachment.emit(request("one more"), "here")).toThrow(/1000 requests open/);
  });
});
