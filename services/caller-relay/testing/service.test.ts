import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { CallerToolCancellationReason } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { WatchDeclarationResponse } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf } from "../../../test/harness/bus.ts";
import { type Clients, openTestRelay, owner, type TestRelay } from "./test-relay.ts";

describe("caller-relay on the bus", () => {
  const clock = createManualClock(Date.now());
  let relay: TestRelay;
  let app: Clients;

  beforeAll(async () => {
    relay = await openTestRelay({ instances: ["a", "b"], clock });
    app = relay.clientsOf(owner);
  });
  afterAll(() => relay[Symbol.asyncDispose]());

  test("CTR-1 a declaration replaces the one before, an empty one clears it, and who watches is told", async () => {
    const watching = new AbortController();
    const offers = app.provider.watchProvidedTools({ scope: { sessionId: "s1" } }, { signal: watching.signal });
    const iterator = offers[Symbol.asyncIterator]();
    const next = async () =>
      (await iterator.next()).value.tools.map((offered: { tool?: { name: string } }) => offered.tool?.name);
    expect(await next()).toEqual([]);
    expect((await app.declare("s1", { name: "one" }, { name: "two" })).names).toEqual(["app_one", "app_two"]);
    expect(await next()).toEqual(["app_one", "app_two"]);
    await app.declare("s1", { name: "three" });
    expect(await next()).toEqual(["app_three"]);
    await app.declare("s1");
    expect(await next()).toEqual([]);
    expect((await app.relay.getDeclaration({ sessionId: "s1" })).declaration).toBeUndefined();
    watching.abort();
  });

  test("CTR-1 those who watch many sessions cost the broker no subscription of their own, and each hears of its session", async () => {
    const consumers = async () => (await relay.bus.manager.streams.info("KV_toolbus_callers")).state.consumer_count;
    const before = await consumers();
    const watching = new AbortController();
    const sessions = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    const watches = sessions.map((sessionId) =>
      app.provider.watchProvidedTools({ scope: { sessionId } }, { signal: watching.signal })[Symbol.asyncIterator](),
    );
    for (const watch of watches) expect((await watch.next()).value.tools).toEqual([]);
    for (const sessionId of sessions) await app.declare(sessionId, { name: `of_${sessionId}` });
    const heard = await Promise.all(watches.map(async (watch) => (await watch.next()).value.tools[0]?.tool?.name));
    expect(heard).toEqual(sessions.map((sessionId) => `app_of_${sessionId}`));
    expect(await consumers()).toBe(before);
    watching.abort();
  });

  test("CTR-9 the session's owner follows the declaration: as it is, and after each change", async () => {
    const watching = new AbortController();
    const watch = app.relay.watchDeclaration({ sessionId: "s9" }, { signal: watching.signal })[Symbol.asyncIterator]();
    const next = async () => (await watch.next()).value as WatchDeclarationResponse;
    const first = await next();
    expect(first.declaration).toBeUndefined();
    await app.declare("s9", { name: "one" });
    expect((await next()).declaration?.tools.map(({ name }) => name)).toEqual(["one"]);
    await app.declare("s9");
    expect(await next()).toEqual(first);
    const stranger = relay.clientsOf("stranger").relay.watchDeclaration({ sessionId: "s9" })[Symbol.asyncIterator]();
    await expect(stranger.next()).rejects.toThrow(/belongs to another/);
    watching.abort();
  });

  test("CTR-2 the tools are offered with prefix, schema and time, to their own session only", async () => {
    await app.declare("s2", { name: "ask" });
    const { tools } = await app.provider.getProvidedTools({ scope: { sessionId: "s2" } });
    expect(tools).toMatchObject([
      {
        source: "",
        tool: {
          name: "app_ask",
          inputSchemaJson: '{"type":"object"}',
          timeout: durationFromMs(60_000),
          visible: false,
        },
      },
    ]);
    expect((await app.provider.getProvidedTools({ scope: { sessionId: "other" } })).tools).toEqual([]);
    await expect(app.declare("s2", { name: "a b" })).rejects.toThrow(/"a b".*"app_a b"/);
    for (const name of ["store", "shop"])
      await expect(app.declare("s2", { name })).rejects.toThrow(
        `"${name}", which the agent would see as "app_${name}", collides with the agent's tool "app_store"`,
      );
    await expect(app.declare("s2", { name: "_x" })).rejects.toThrow(/"_x".*"app__x".*another name/);
    expect((await app.provider.getProvidedTools({ scope: { sessionId: "s2" } })).tools).toHaveLength(1);
  });

  test("CTR-3 a call reaches the caller with its id, its session, the bare name, its arguments and its end", async () => {
    const caller = await app.openCaller("s3");
    expect(await app.relay.getDeclaration({ sessionId: "s3" })).toMatchObject({ attached: true });
    const result = app.call("s3", "app_ask", "call-3", { question: 7 });
    const request = await caller.next();
    expect(request).toMatchObject({ requestId: "call-3", sessionId: "s3", tool: "ask" });
    expect(JSON.parse(request.argumentsJson)).toEqual({ question: 7 });
    expect(timestampMs(request.expireTime!)).toBe(clock.now() + 60_000);
    expect(await app.answer("s3", "call-3", 8)).toMatchObject({ late: false });
    expect(await result).toEqual({ isError: false, value: 8 });
    caller.close();
  });

  test("CTR-4 an error is a tool error, null a valid result, and an answer that says nothing ends nothing", async () => {
    const caller = await app.openCaller("s4");
    const results = ["e", "n", "x"].map((callId) => app.call("s4", "app_ask", callId));
    for (const _ of results) await caller.next();
    await app.relay.respond({
      sessionId: "s4",
      requestId: "e",
      outcome: { case: "error", value: "no such file" },
    });
    await app.relay.respond({ sessionId: "s4", requestId: "n", outcome: { case: "resultJson", value: "null" } });
    for (const outcome of [{ case: undefined }, { case: "resultJson", value: "" } as const]) {
      await expect(app.relay.respond({ sessionId: "s4", requestId: "x", outcome })).rejects.toThrow(
        /neither a result nor an error of call x is given/,
      );
    }
    await app.answer("s4", "x", null);
    expect(await Promise.all(results)).toEqual([
      { isError: true, value: { error: "no such file" } },
      { isError: false, value: null },
      { isError: false, value: null },
    ]);
    caller.close();
  });

  test("CTR-4 of ten answers at once one wins, the others are told that the request is resolved", async () => {
    const caller = await app.openCaller("s5");
    const result = app.call("s5", "app_ask", "call-5");
    await caller.next();
    await expect(
      app.relay.respond({ sessionId: "s5", requestId: "call-5", outcome: { case: "resultJson", value: "{" } }),
    ).rejects.toThrow(/is not JSON/);
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) => app.answer("s5", "call-5", index)),
    );
    const refusals = answers.filter((settled) => settled.status === "rejected").map(({ reason }) => reason.rawMessage);
    expect(refusals).toEqual(Array.from({ length: 9 }, () => "request call-5 not found or already resolved"));
    expect((await result).value).toBe(answers.findIndex(({ status }) => status === "fulfilled"));
    caller.close();
    expect(await refusalOf(app.answer("s5", "call-5", 1))).toEqual(resolved("call-5"));
    const message = "request call-6 not found or already resolved";
    expect(await refusalOf(app.answer("s5", "call-6", 1))).toEqual({
      ...{ code: "not_found", reason: "CALL_NOT_FOUND", message, metadata: { call_id: "call-6" } },
    });
  });

  test("CTR-4 ten answers race with ids of their own: the winner is told so however often it asks, in time and late", async () => {
    const caller = await app.openCaller("s-raced");
    for (const tool of ["ask", "quick"]) {
      const requestId = `raced-${tool}`;
      const result = app.call("s-raced", `app_${tool}`, requestId);
      await caller.next();
      const isLate = tool === "quick";
      if (isLate) await clock.advance(500);
      if (isLate) expect((await result).isError).toBe(true);
      const answer = (index: number, value = `${index}`) =>
        app.relay.respond({
          ...{ sessionId: "s-raced", requestId, submissionId: `by ${index}` },
          outcome: { case: "resultJson", value },
        });
      const race = () => Promise.allSettled(Array.from({ length: 10 }, (_, index) => answer(index)));
      const winner = (await race()).findIndex(({ status }) => status === "fulfilled");
      if (!isLate) expect((await result).value).toBe(winner);
      else
        expect(relay.inbox.get(`tr:${requestId}`)?.event.value).toMatchObject({ result: { outputJson: `${winner}` } });
      const again = await race();
      for (const [index, outcome] of again.entries()) {
        if (index === winner) expect(outcome).toMatchObject({ status: "fulfilled", value: { late: isLate } });
        else
          expect(outcome).toMatchObject({
            reason: { rawMessage: `request ${requestId} not found or already resolved` },
          });
      }
      await expect(answer(winner, '"other"')).rejects.toThrow(/already_exists.*stands for another outcome/);
    }
    caller.close();
  });

  test("CTR-5 a stranger can neither answer, attach nor declare, and the request stays open", async () => {
    const caller = await app.openCaller("s6");
    const result = app.call("s6", "app_ask", "call-6");
    await caller.next();
    const stranger = relay.clientsOf("stranger");
    const refusal = /permission_denied/;
    const foreign = { sessionId: "s6", requestId: "call-6", outcome: { case: "resultJson", value: "1" } as const };
    await expect(stranger.relay.respond(foreign)).rejects.toThrow(refusal);
    await expect(stranger.attach("s6")).rejects.toThrow(refusal);
    await expect(stranger.declare("s6")).rejects.toThrow(refusal);
    await expect(stranger.relay.getDeclaration({ sessionId: "s6" })).rejects.toThrow(refusal);
    await app.answer("s6", "call-6", "mine");
    expect((await result).value).toBe("mine");
    caller.close();
    const audited = await until(async () => {
      const blocked = (await auditOf(relay.bus, AuditKind.BLOCKED)).filter(({ sessionId }) => sessionId === "s6");
      return blocked.length === 4 && blocked;
    });
    expect(audited[0]).toMatchObject({
      service: "caller-relay",
      rule: "not the session's owner",
      principal: "stranger",
    });
  });

  test("CTR-5 sessions that are unknown or closed take no caller", async () => {
    await expect(app.attach("unknown")).rejects.toThrow(/not_found/);
    await expect(app.attach("closed")).rejects.toThrow(/session closed is closed/);
  });

  test("CTR-6 without an answer the agent is told tool and time; the first late answer goes to the inbox", async () => {
    const caller = await app.openCaller("s7");
    const [slow, quick] = [app.call("s7", "app_ask", "slow"), app.call("s7", "app_quick", "quick")];
    await Promise.all([caller.next(), caller.next()]);
    await clock.advance(500);
    expect((await quick).value.error).toBe('Caller tool "app_quick" timed out after 500ms');
    await clock.advance(59_499);
    await app.answer("s7", "slow", "in time");
    expect((await slow).value).toBe("in time");
    const late = await Promise.allSettled([1, 2, 3].map((value) => app.answer("s7", "quick", value)));
    expect(late.filter((settled) => settled.status === "fulfilled").map(({ value }) => value.late)).toEqual([true]);
    const winner = late.findIndex(({ status }) => status === "fulfilled") + 1;
    expect(relay.inbox.get("tr:quick")).toMatchObject({
      sessionId: "s7",
      agent: "helper",
      event: { value: { callId: "quick", tool: "app_quick", result: { outputJson: `${winner}` } } },
    });
    expect(await refusalOf(app.answer("s7", "quick", 4))).toEqual(resolved("quick"));
    caller.close();
  });

  test("CTR-6 an agent's side that gives up at the deadline leaves the late answer its way to the inbox", async () => {
    const caller = await app.openCaller("s8");
    const givingUp = new AbortController();
    const result = app.call("s8", "app_quick", "given-up", {}, givingUp.signal).catch((error: unknown) => error);
    await caller.next();
    await clock.advance(450);
    givingUp.abort();
    await result;
    await until(() => clock.sleeping === 0, { what: "the relay to hear of it" });
    expect((await app.answer("s8", "given-up", 1)).late).toBe(true);
    expect(relay.inbox.has("tr:given-up")).toBe(true);
    caller.close();
  });

  test("KIND-2 the caller's progress goes to all who wait for the call, whichever instances have it, and ends with it", async () => {
    const sessions = Array.from({ length: 6 }, (_, index) => `s-progress-${index}`);
    await Promise.all(
      sessions.map(async (sessionId) => {
        const caller = await app.openCaller(sessionId);
        const told: string[] = [];
        const watch = () => app.callTold(sessionId, "app_ask", "slow", (progress) => void told.push(progress.message));
        const first = watch();
        await caller.next();
        const second = watch();
        const report = { sessionId, requestId: "slow", progress: 1, total: 2, message: "half" };
        await until(async () => {
          await app.relay.reportProgress(report);
          return told.length >= 3; // both have joined
        });
        await expect(relay.clientsOf("stranger").relay.reportProgress(report)).rejects.toThrow(/belongs to another/);
        await app.answer(sessionId, "slow", 1);
        expect([(await first).value, (await second).value]).toEqual([1, 1]);
        expect(new Set(told)).toEqual(new Set(["half"]));
        await expect(app.relay.reportProgress(report)).rejects.toThrow(/request slow not found or already resolved/);
        caller.close();
      }),
    );
  });

  test("CTR-8 two hundred calls of a session are in flight at once, and a slow one delays no other", async () => {
    const caller = await app.openCaller("s15");
    const ids = Array.from({ length: 200 }, (_, index) => `many-${index}`);
    const results = ids.map((id) => app.call("s15", "app_ask", id));
    const arrived: string[] = [];
    for (const _ of ids) arrived.push((await caller.next()).requestId);
    expect(arrived.toSorted()).toEqual(ids.toSorted());
    const [slow = "", ...others] = arrived;
    await Promise.all(others.reverse().map((id) => app.answer("s15", id, id)));
    await Promise.all(
      ids.filter((id) => id !== slow).map(async (id) => expect((await results[ids.indexOf(id)])?.value).toBe(id)),
    );
    await app.answer("s15", slow, slow);
    expect((await results[ids.indexOf(slow)])?.value).toBe(slow);
    caller.close();
  });

  test("KIND-2 calls of one id are one call, whichever instances are asked", async () => {
    const caller = await app.openCaller("s16");
    const first = app.call("s16", "app_ask", "same");
    await caller.next();
    const leaving = new AbortController();
    const left = app.call("s16", "app_ask", "same", {}, leaving.signal).catch(() => "left");
    const others = Array.from({ length: 6 }, () => app.call("s16", "app_ask", "same"));
    leaving.abort();
    expect(await left).toBe("left");
    await app.call("s16", "app_none", "barrier").catch(() => {}); // refused: by then the joining calls have arrived
    const distinct = app.call("s16", "app_ask", "distinct");
    expect((await caller.next()).requestId).toBe("distinct");
    await app.answer("s16", "same", "one");
    await app.answer("s16", "distinct", "two");
    for (const result of [first, ...others]) expect((await result).value).toBe("one");
    expect((await distinct).value).toBe("two");
    caller.close();
  });

  test("LOOP-15 CTR-4 a call that is given up is told to the caller, whichever instances have it, and its answer is refused", async () => {
    const sessions = Array.from({ length: 8 }, (_, index) => `s17-${index}`); // call and stream come to one instance or to two
    await Promise.all(
      sessions.map(async (sessionId) => {
        const caller = await app.openCaller(sessionId);
        const leaving = new AbortController();
        const left = app.call(sessionId, "app_ask", "left", {}, leaving.signal).catch(() => "left");
        const kept = app.call(sessionId, "app_ask", "kept");
        const sent = [await caller.next(), await caller.next()].map(({ requestId }) => requestId);
        expect(sent.toSorted()).toEqual(["kept", "left"]);
        leaving.abort();
        expect(await left).toBe("left");
        expect(await caller.canceled()).toMatchObject({
          requestId: "left",
          reason: CallerToolCancellationReason.CANCELED,
        });
        expect(await refusalOf(app.answer(sessionId, "left", 1))).toEqual(resolved("left"));
        await app.answer(sessionId, "kept", "here");
        expect((await kept).value).toBe("here");
        const next = app.call(sessionId, "app_ask", "next");
        expect((await caller.next()).requestId, "an answered request is not canceled").toBe("next");
        await app.answer(sessionId, "next", 2);
        await next;
        caller.close();
      }),
    );
    expect(relay.inbox.has("tr:left")).toBe(false);
  });
});

/** What whoever answers is told: the one text of CTR-4, and a reason that says more. */
const refusalOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "taken",
    (error: unknown) => {
      const { code, reason, message, metadata } = failureFromConnectError(error);
      return { code, reason, message, metadata };
    },
  );

const resolved = (requestId: string) => ({
  code: "failed_precondition",
  reason: "CALL_ALREADY_RESOLVED",
  message: `request ${requestId} not found or already resolved`,
  metadata: { call_id: requestId },
});
