import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { type Submission, wonBy } from "#runtime/results/submission.ts";
import { DEFAULT_TIMINGS } from "#runtime/rpc/nats/call/timings.ts";
import { delay } from "#runtime/time/delay.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { programOf } from "../../../test/harness/programs.ts";
import { streamsOf } from "../streams/stream-record.ts";
import { createStores } from "../subscriptions.ts";
import { type Clients, environmentOf, openTestRelay, owner, type TestCaller, type TestRelay } from "./test-relay.ts";

describe("an instance that dies with callers' streams in its hands", () => {
  const stack = new AsyncDisposableStack();
  let relay: TestRelay;
  let doomed: ChildProcess;

  beforeAll(async () => {
    relay = stack.use(await openTestRelay());
    doomed = stack.use(await openProcess(relay, "doomed"));
  });
  afterAll(() => stack.disposeAsync());

  test("CTR-7 its callers are told, calls without grace end at once, others reach the caller on the next instance", async () => {
    const app = relay.clientsOf(owner);
    await Promise.all(["hasty", "patient"].map((sessionId) => app.declare(sessionId, { name: "ask" })));
    const hasty = await app.attach("hasty");
    const patient = await app.attach("patient", 10_000);
    stack.use(await relay.openInstance("survivor"));

    const ids = Array.from({ length: 16 }, (_, index) => `${index}`);
    const call = (sessionId: string) => (id: string) =>
      app.call(sessionId, "app_ask", `${sessionId}-${id}`).then(
        ({ value }) => String(value.error ?? value),
        (error: unknown) => String(error),
      );
    const hastyResults = ids.map(call("hasty"));
    const patientResults = ids.map(call("patient"));
    for (const _ of ids) await Promise.all([hasty.next(), patient.next()]);

    const diedAt = tickedMs();
    const streamsEnd = Promise.all([hasty.failure(), patient.failure()]);
    await doomed.kill();
    expect((await streamsEnd).map(String)).toEqual([
      expect.stringMatching(/unavailable/),
      expect.stringMatching(/unavailable/),
    ]);
    const ends = await Promise.all(hastyResults);
    expect(tickedMs() - diedAt).toBeLessThan(4_500);
    for (const end of ends) expect(end).toMatch(/^Connection lost: |\[unavailable\]/); // held by the survivor, or by the dead
    expect(ends).toContainEqual(expect.stringMatching(/^Connection lost: /));

    const back = await app.attach("patient", 10_000);
    const answering = answerAll(app, "patient", back);
    const outcomes = await Promise.all(patientResults);
    for (const outcome of outcomes) expect(outcome).toMatch(/^answered$|\[unavailable\]/);
    expect(outcomes).toContain("answered");
    back.close();
    await answering;
  });

  test("LOOP-15 a caller is told that a request is canceled when the instance dies that held its call", async () => {
    await using own = await openTestRelay();
    await using holder = await openProcess(own, "holder");
    const app = own.clientsOf(owner);
    await app.declare("s", { name: "ask" });
    const calls = () => ["1", "2", "3", "4"].map((id) => app.call("s", "app_ask", id).catch(String));
    const before = await app.attach("s", 0, "window");
    const held = calls();
    for (const _ of held) await before.next();
    await using _ = await own.openInstance("other"); // the stream that comes next may be there
    const caller = await until(() => attachAt(own, app, "other"), { what: "a stream at the other instance" });
    for (const _ of held) await caller.next();
    await holder.kill();
    const told = [];
    for (const _ of held) told.push((await caller.canceled()).requestId);
    expect(told.toSorted()).toEqual(["1", "2", "3", "4"]);
    await Promise.all(held);
    caller.close();
  });

  test("CTR-7 a request outlives the instance that holds its call: asked for again it goes on, whenever its answer came", async () => {
    await using own = await openTestRelay();
    await using holder = await openProcess(own, "holder");
    const app = own.clientsOf(owner);
    await app.declare("s", { name: "ask" });
    const ids = ["before", "between", "after", "never"];
    const before = await app.attach("s", 0, "window");
    const lost = ids.map((id) => app.call("s", "app_ask", id).catch(String));
    for (const _ of ids) await before.next();
    await using _other = await own.openInstance("other");
    const caller = await until(() => attachAt(own, app, "other"), { what: "a stream at the other instance" });
    for (const _ of ids) await caller.next();
    await app.answer("s", "before", 1);
    await holder.kill();
    for (const id of ids) expect(String((await lost[ids.indexOf(id)]) as unknown)).toMatch(/unavailable|object/);
    await until(() => app.answer("s", "between", 2).catch(() => false as const), { what: "the holder to be missed" });
    const again = (id: string) => app.call("s", "app_ask", id, {}, undefined, true);
    const [between, after, never] = ids.slice(1).map(again);
    expect((await between)?.value).toBe(2);
    expect((await again("before")).value, "what the dead instance took").toBe(1);
    await until(() => app.answer("s", "after", 3).catch(() => false as const), { what: "the next holder" });
    expect((await after)?.value).toBe(3);
    const fresh = app.call("s", "app_ask", "fresh");
    expect((await caller.next()).requestId, "nothing was sent twice, and nothing canceled").toBe("fresh");
    caller.close();
    expect((await never)?.value.error).toMatch(/^Connection lost/);
    expect((await fresh).value.error).toMatch(/^Connection lost/);
  });

  test("CTR-7 a call outlives the router that asked for it: the next one gets its answer, given before or after", async () => {
    await using own = await openTestRelay({ instances: ["one"] });
    await using _ = await own.openInstance("other"); // some calls are held by one, and asked for at the other
    const app = own.clientsOf(owner);
    const ids = ["1", "2", "3", "4", "5", "6", "early"];
    const caller = await app.openCaller("s");
    const doomed = await own.bus.connect();
    const lost = ids.map((id) => own.clientsOf(owner, doomed).call("s", "app_ask", id).catch(String));
    for (const _ of ids) await caller.next();
    await doomed.connection.close();
    await Promise.all(lost);
    await app.answer("s", "early", "early");
    await delay(DEFAULT_TIMINGS.silenceMs); // by then the relay has missed the router, and might take that for a cancel
    const again = ids.map((id) => app.call("s", "app_ask", id, {}, undefined, true));
    for (const id of ids.slice(0, -1)) await app.answer("s", id, id);
    expect((await Promise.all(again)).map(({ value }) => value)).toEqual(ids);
    const fresh = app.call("s", "app_ask", "fresh");
    expect((await caller.next()).requestId, "nothing was sent twice, and nothing canceled").toBe("fresh");
    caller.close();
    await fresh;
  });

  test("CTR-8 windows of an instance that was killed take no room from those that are opened again", async () => {
    await using own = await openTestRelay();
    await using holder = await openProcess(own, "holder");
    const app = own.clientsOf(owner);
    await app.declare("s", { name: "ask" });
    const open = () => Promise.all(Array.from({ length: 16 }, () => app.attach("s", 10_000)));
    await open();
    await holder.kill();
    await using _ = await own.openInstance("other");
    const windows = await open();
    await expect(app.attach("s")).rejects.toThrow(/16 streams open/);
    for (const window of windows) window.close();
  });

  test("CTR-4 an answer that the killed instance took is told by another one that it won; others are not", async () => {
    await using own = await openTestRelay();
    const holder = await openProcess(own, "holder");
    const app = own.clientsOf(owner);
    await app.declare("s", { name: "ask" });
    const caller = await app.attach("s");
    const result = app.call("s", "app_ask", "once");
    await caller.next();
    const answer = (submissionId: string, value: string) =>
      app.relay.respond({ sessionId: "s", requestId: "once", submissionId, outcome: { case: "resultJson", value } });
    expect(await answer("mine", "1")).toMatchObject({ late: false });
    expect((await result).value).toBe(1);
    await holder.kill();
    await using _ = await own.openInstance("other");
    expect(await answer("mine", "1")).toMatchObject({ late: false });
    await expect(answer("mine", "2")).rejects.toThrow(/stands for another outcome/);
    await expect(answer("theirs", "1")).rejects.toThrow("request once not found or already resolved");
  });

  test("CTR-4 a late answer whose instance died on its way to the inbox is brought there by the next submission", async () => {
    await using own = await openTestRelay({ instances: ["lasting"] });
    const app = own.clientsOf(owner);
    const { late, answered } = createStores(own.bus, "dead");
    await late.create("s.cut", { agent: "helper", tool: "app_ask" });
    const lateResult = create(ToolResultSchema, { outputJson: '"of the dead"' });
    const mine: Submission = { submissionId: "mine", outcome: { case: "resultJson", value: '"of the dead"' } };
    const { submissionId, sha256: submissionSha256 } = wonBy(mine);
    const record = create(AnsweredRequestSchema, { submissionId, submissionSha256, lateResult });
    await answered.create("s.cut", record);
    const answer = (id: string, value: string) =>
      app.relay.respond({ sessionId: "s", requestId: "cut", submissionId: id, outcome: { case: "resultJson", value } });
    await expect(answer("theirs", "2")).rejects.toThrow("request cut not found or already resolved");
    expect(own.inbox.get("tr:cut")?.event.value).toMatchObject({ result: { outputJson: '"of the dead"' } });
    expect(await answer("mine", '"of the dead"')).toMatchObject({ late: true });
  });

  test("BUS-4 after the loss of the server a declaration stands, and a caller that attaches again is served, also what was under way", async () => {
    await using own = await openTestRelay();
    await using _ = await own.openInstance("lasting");
    const app = own.clientsOf(owner);
    await app.declare("s", { name: "ask" });
    const caller = await app.attach("s", 30_000);
    const held = app.call("s", "app_ask", "held").catch(String);
    await caller.next();
    await own.bus.server.kill();
    expect(String(await caller.failure())).toMatch(/unavailable/);
    await own.bus.server.restart();
    const back = await until(() => app.attach("s").catch(() => false as const), { what: "the relay to be back" });
    expect((await back.next()).requestId, "nobody canceled it").toBe("held");
    const again = app.call("s", "app_ask", "held", {}, undefined, true);
    await until(() => app.answer("s", "held", 2).catch(() => false as const), {
      what: "the call to be asked for again",
    });
    expect((await again).value).toBe(2);
    expect(await held).toMatch(/unavailable/);
    const result = app.call("s", "app_ask", "afterwards");
    const { requestId } = await back.next();
    await app.relay.respond({ sessionId: "s", requestId, outcome: { case: "resultJson", value: "1" } });
    expect((await result).value).toBe(1);
    back.close();
  });
});

async function answerAll(app: Clients, sessionId: string, caller: TestCaller): Promise<void> {
  for (;;) {
    const request = await caller.next().catch(() => undefined); // the end of the stream
    if (request === undefined) return;
    await app.relay.respond({
      sessionId,
      requestId: request.requestId,
      outcome: { case: "resultJson", value: '"answered"' },
    });
  }
}

async function openProcess(relay: TestRelay, instance: string): Promise<ChildProcess> {
  const main = programOf("services/caller-relay/main");
  const env = { ...process.env, ...environmentOf(relay.bus, instance) };
  const child = await openChildProcess({ command: process.execPath, args: [main], env });
  for await (const line of child.lines()) {
    if (JSON.parse(line).msg === "ready") return child;
  }
  throw new Error(`the relay did not start: ${child.stderrTail()}`);
}

/** A new stream of the session, if it came to that instance. */
async function attachAt(relay: TestRelay, app: Clients, instance: string): Promise<TestCaller | undefined> {
  const caller = await app.attach("s", 0, "window");
  const found = await createStores(relay.bus, "test").records.read("s");
  return streamsOf(found?.value).every((stream) => stream.instance === instance) ? caller : undefined;
}
