import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { until } from "#runtime/time/until.ts";
import { type MisbehavingWorld, openMisbehavingWorld, resultEvent } from "../peers/misbehaving-provider.ts";

let world: MisbehavingWorld;
beforeAll(async () => {
  world = await openMisbehavingWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("KIND-2 a provider that hangs or dies", () => {
  test("while it is asked for its tools: the others' are listed without it, and it is said to be away", async () => {
    world.misbehaving.isHanging = true;
    world.misbehaving.offer([]);
    await world.applyAgent("hung");
    const { tools, sources } = await world.clients.router.listTools({ scope: { case: "agent", value: "hung" } });
    expect(tools.map(({ modelName }) => modelName)).toEqual(["shop__buy"]);
    expect(sources).toContainEqual(
      expect.objectContaining({
        source: "lies",
        available: false,
        reason: expect.stringContaining("did not list its tools within 300 ms"),
      }),
    );
    const why = await world.clients.router.explainTool({ scope: { case: "agent", value: "hung" }, name: "@lies/tell" });
    expect(why.rule).toContain("lies cannot be used: did not list its tools within 300 ms");
    world.misbehaving.isHanging = false;
    world.misbehaving.offer([{ source: "lies", tool: { name: "tell" } }]);
    await world.buyElsewhere();
  });

  test("in a call: the call ends with its time, the provider is told, and others wait for nothing", async () => {
    const tool = { name: "tell", timeout: durationFromMs(200), executionType: ExecutionType.CUSTOM };
    world.misbehaving.offer([{ source: "lies", tool }]);
    await until(async () => (await world.listed()).some((one) => msFromDuration(one.tool?.timeout) === 200));
    world.misbehaving.canceled.length = 0;
    world.misbehaving.answer = async function* (_request, signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield resultEvent('"too late"');
    };
    const telling = world.tell();
    await world.buyElsewhere();
    expect((await telling).output).toEqual({ error: 'Tool "@lies/tell" timed out after 200ms (the tool\'s time)' });
    await until(() => world.misbehaving.canceled.length === 1);
  });

  test("for good: its tools stay known, say why they fail, and work again when it is back", async () => {
    const isThere = async () =>
      (await world.listed()).find(({ modelName }) => modelName === "lies__tell")?.available === true;
    await world.stopMisbehaving();
    expect((await world.tell()).output).toMatchObject({ error: expect.stringContaining("nothing was started") });
    await world.buyElsewhere();
    await until(async () => !(await isThere()));
    world.misbehaving.answer = async function* () {
      yield resultEvent('"back"');
    };
    await world.startMisbehaving();
    await until(isThere);
    expect((await world.tell()).output).toBe("back");
    const { sessionId } = world;
    const filter = { sessionId, tool: "misbehaving", kinds: [AuditKind.UNAVAILABLE, AuditKind.AVAILABLE] };
    await until(async () => {
      const { events } = await world.clients.audit.listAuditEvents({ filter });
      return events[0]?.kind === AuditKind.AVAILABLE && events[1]?.kind === AuditKind.UNAVAILABLE;
    });
  });
});
