import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallerToolCancellationReason } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { type Clients, closeSession, openTestRelay, owner, type TestRelay } from "./test-relay.ts";

describe("a caller that goes away, and one that comes back", () => {
  const clock = createManualClock(Date.now());
  let relay: TestRelay;
  let app: Clients;

  beforeAll(async () => {
    relay = await openTestRelay({ instances: ["a", "b"], clock });
    app = relay.clientsOf(owner);
  });
  afterAll(() => relay[Symbol.asyncDispose]());

  test("CTR-7 a caller that goes away ends its requests with an error that is no timeout", async () => {
    const caller = await app.openCaller("s9");
    const results = Array.from({ length: 6 }, (_, index) => app.call("s9", "app_ask", `gone-${index}`));
    for (const _ of results) await caller.next();
    const closedAt = tickedMs();
    caller.close();
    for (const { isError, value } of await Promise.all(results)) {
      expect([isError, value.error]).toEqual([true, expect.stringMatching(/^Connection lost: .*"app_ask"/)]);
    }
    expect(tickedMs() - closedAt).toBeLessThan(1_000);
    await expect(app.answer("s9", "gone-0", 1)).rejects.toThrow(/failed_precondition.*already resolved/);
  });

  test("CTR-7 a call without an attached caller fails at once", async () => {
    await app.declare("s10", { name: "ask" });
    const { value } = await app.call("s10", "app_ask", "alone");
    expect(value.error).toMatch(/^Connection missing: no caller is attached to session s10/);
    await expect(app.call("s10", "app_other", "none")).rejects.toThrow(/declares no tool "app_other"/);
  });

  test("CTR-7 a caller that comes back within the grace gets its open requests again, and those made meanwhile", async () => {
    const first = await app.openCaller("s11", 5_000);
    const before = app.call("s11", "app_ask", "before");
    const { expireTime: expiresAt } = await first.next();
    first.close();
    await until(async () => !(await app.relay.getDeclaration({ sessionId: "s11" })).attached);
    const meanwhile = app.call("s11", "app_ask", "meanwhile");
    await clock.advance(4_000);
    const second = await app.attach("s11", 5_000);
    const again = [await second.next(), await second.next()].toSorted((a, b) => a.requestId.localeCompare(b.requestId));
    expect(again.map(({ requestId }) => requestId)).toEqual(["before", "meanwhile"]);
    expect(again[0]?.expireTime).toEqual(expiresAt);
    await app.answer("s11", "before", 1);
    await app.answer("s11", "meanwhile", 2);
    expect([(await before).value, (await meanwhile).value]).toEqual([1, 2]);
    second.close();
  });

  test("CTR-7 whoever waits for a call is told its caller's grace before the caller has the request, and when it changes", async () => {
    const sessions = Array.from({ length: 6 }, (_, index) => `told-${index}`);
    await Promise.all(
      sessions.map(async (sessionId) => {
        const gracesTo = async function* () {
          const call = { callId: "held", tool: "app_ask", scope: { sessionId } };
          for await (const { event } of app.provider.executeTool(call)) {
            yield event.case === "held" ? msFromDuration(event.value.takeoverGrace) : event.case;
          }
        };
        const first = await app.openCaller(sessionId, 5_000, "window");
        const [waiter, joining] = [gracesTo(), gracesTo()];
        const told = waiter.next();
        await first.next();
        expect((await told).value).toBe(5_000);
        expect((await joining.next()).value, "whichever instance was asked").toBe(5_000);
        const second = await app.attach(sessionId, 0, "window");
        await second.next();
        expect((await waiter.next()).value).toBe(0);
        await app.answer(sessionId, "held", 1);
        expect([(await waiter.next()).value, (await waiter.next()).done]).toEqual(["result", true]);
        const graceless = gracesTo();
        const result = graceless.next();
        const { requestId } = await second.next();
        await app.answer(sessionId, requestId, 2);
        expect((await result).value, "of a caller without a grace nothing is told").toBe("result");
        second.close();
      }),
    );
  });

  test("CTR-7 an answer counts during the grace too", async () => {
    const caller = await app.openCaller("s12", 5_000);
    const result = app.call("s12", "app_ask", "no-stream");
    await caller.next();
    caller.close();
    await until(async () => !(await app.relay.getDeclaration({ sessionId: "s12" })).attached);
    await app.answer("s12", "no-stream", "still");
    expect((await result).value).toBe("still");
  });

  test("LOOP-15 CTR-7 a request that is canceled while its caller is away is told to it when it comes back", async () => {
    const first = await app.openCaller("s15", 5_000);
    const leaving = new AbortController();
    const left = app.call("s15", "app_ask", "left", {}, leaving.signal).catch(String);
    await first.next();
    first.close();
    await until(async () => !(await app.relay.getDeclaration({ sessionId: "s15" })).attached);
    leaving.abort();
    await left;
    await until(
      () =>
        app.answer("s15", "left", 1).then(
          () => false,
          () => true,
        ),
      { what: "the request to be given up" },
    );
    const second = await app.attach("s15", 5_000);
    expect(await second.canceled()).toMatchObject({
      requestId: "left",
      reason: CallerToolCancellationReason.CANCELED,
    });
    second.close();
  });

  test("CTR-7 when the grace is over, the requests end with the connection error", async () => {
    const caller = await app.openCaller("s13", 5_000);
    const result = app.call("s13", "app_ask", "waits");
    await caller.next();
    caller.close();
    await until(() => clock.sleeping >= 2, { what: "the call to wait for its end and for its caller" });
    await clock.advance(5_000);
    expect((await result).value.error).toMatch(/^Connection lost/);
  });

  test("CTR-7 a newer stream of a name ends the older one and takes over its requests", async () => {
    const older = await app.openCaller("s14", 0, "window");
    const result = app.call("s14", "app_ask", "moved");
    await older.next();
    const newer = await app.attach("s14", 0, "window");
    expect(String(await older.failure())).toMatch(/another stream of session s14 was attached/);
    expect((await newer.next()).requestId).toBe("moved");
    await app.answer("s14", "moved", "there");
    expect((await result).value).toBe("there");
    newer.close();
  });

  test("CTR-8 two windows of a caller share its requests in turn, and each ends for itself", async () => {
    const one = await app.openCaller("s16", 0, "one");
    const two = await app.attach("s16", 0, "two");
    const ids = Array.from({ length: 8 }, (_, index) => `shared-${index}`);
    const results = [];
    for (const id of ids) results.push(app.call("s16", "app_ask", id));
    const ofOne = [await one.next(), await one.next()].map(({ requestId }) => requestId);
    const ofTwo = [await two.next(), await two.next()].map(({ requestId }) => requestId);
    expect(ofOne.filter((id) => ofTwo.includes(id))).toEqual([]);
    for (const id of ofTwo) await app.answer("s16", id, `two ${id}`);
    one.close();
    for (const id of ofOne) expect((await results[ids.indexOf(id)])?.value.error).toMatch(/^Connection lost/);
    for (const id of ofTwo) expect((await results[ids.indexOf(id)])?.value).toBe(`two ${id}`);
    expect(await app.relay.getDeclaration({ sessionId: "s16" })).toMatchObject({ attached: true });
    const next = app.call("s16", "app_ask", "then");
    await until(async () => (await two.next()).requestId === "then");
    await app.answer("s16", "then", 1);
    expect((await next).value).toBe(1);
    two.close();
  });

  test("CTR-8 one caller opens so many windows, and is told how to open one again", async () => {
    await app.declare("s17", { name: "ask" });
    const open = [];
    for (let index = 0; index < 16; index++) open.push(await app.attach("s17"));
    await expect(app.attach("s17")).rejects.toThrow(/resource_exhausted.*16 streams open.*stream_id/);
    for (const window of open) window.close();
  });

  test("CTR-8 as many windows open under the longest names that the contract allows", async () => {
    await app.declare("named", { name: "ask" });
    const names = Array.from({ length: 16 }, (_, index) => String.fromCodePoint(0x1f600 + index).repeat(128));
    const windows = await Promise.all(names.map((name) => app.attach("named", 1_000, name)));
    for (const window of windows) window.close();
  });

  test("CTR-7 a session that is closed ends its caller's streams, and nothing of it is left; a switch ends nothing", async () => {
    const windows = [await app.openCaller("s18", 10_000), await app.attach("s18")];
    const left = () => app.provider.releaseScope({ scope: { sessionId: "s18", agent: "helper" } });
    expect((await left()).closedCount, "the session has another agent").toBe(0);
    const waits = app.call("s18", "app_ask", "waits");
    closeSession("s18");
    expect((await left()).closedCount).toBe(2);
    for (const window of windows) {
      const end = async () => {
        for (;;) {
          const failure = await window.failure();
          if (failure !== "something else came") return failure;
        }
      };
      expect(String(await end())).toMatch(/failed_precondition.*session s18 was closed/);
    }
    expect((await waits).value.error).toMatch(/^Connection/);
    expect(await app.provider.getProvidedTools({ scope: { sessionId: "s18" } })).toMatchObject({ tools: [] });
    await expect(app.attach("s18")).rejects.toThrow(/session s18 is closed/);
  });

  test("SEC-2 a session that is about to be forgotten leaves nothing of its caller to who opens its id next", async () => {
    await app.openCaller("s19", 10_000);
    const scope = { sessionId: "s19", agent: "helper" };
    expect(await app.provider.releaseScope({ scope, forgetsSession: true })).toMatchObject({ closedCount: 1 });
    expect(await app.provider.getProvidedTools({ scope })).toMatchObject({ tools: [] });
    await expect(app.call("s19", "app_ask", "heard")).rejects.toThrow(/declares no tool "app_ask"/);
  });
});
