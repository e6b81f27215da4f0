import { create, toBinary } from "@bufbuild/protobuf";
import { JetStreamApiError } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import {
  MemberKind,
  MemberSchema,
  SpaceEventSchema,
  ToolMessageSchema,
  ToolMessageState,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { textContent } from "#runtime/content/text.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createMessages } from "../messages/messages.ts";
import { createStreamLog, subjectOfSpace } from "./stream-log.ts";

const spaceId = "quiet";
const author = create(MemberSchema, { id: "alice", name: "alice", kind: MemberKind.PERSON });

test("TOOL-13 a space whose messages are all gone to make room takes the next one, also where it was read before", async () => {
  await using bus = await openTestBus();
  const log = createStreamLog(bus);
  const messages = createMessages({ log, clock: systemClock });
  const say = (messageId: string) => messages.send({ spaceId, author, content: textContent(messageId), messageId });
  const ids = async () =>
    (await messages.list(spaceId, { offset: 0, limit: 10, before: 0n })).messages.map(({ id }) => id);
  await say("first");
  expect(await ids()).toEqual(["first"]);
  await bus.manager.streams.purge("TOOLBUS_SPACES", { filter: subjectOfSpace(spaceId) });
  expect(await ids()).toEqual([]);
  await say("second");
  expect(await ids()).toEqual(["second"]);
}, 20_000);

test("BUS-4 calls that read one space while nobody leads its stream end together, each in its own time", async () => {
  await using bus = await openTestBus();
  const { streams } = bus.manager;
  let isLed = false;
  const getMessage: typeof streams.getMessage = async (...asked) => {
    if (isLed) return streams.getMessage(...asked);
    throw new JetStreamApiError({
      code: 503,
      err_code: 10_008,
      description: "JetStream system temporarily unavailable",
    });
  };
  const manager = { ...bus.manager, streams: Object.assign(Object.create(streams), { getMessage }) };
  const log = createStreamLog({ ...bus, manager });
  const startedAtMs = performance.now();
  const reading = Array.from({ length: 4 }, () => callPatience.run(() => log.read(spaceId)));
  for (const { status } of await Promise.allSettled(reading)) expect(status).toBe("rejected");
  expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  isLed = true;
  expect((await callPatience.run(() => log.read(spaceId))).messages).toEqual([]);
}, 40_000);

test("TOOL-5 a question stays in its space for as long as it is open, however much is said after it", async () => {
  await using bus = await openTestBus();
  const messages = createMessages({ log: createStreamLog(bus), clock: systemClock });
  const tool = create(ToolMessageSchema, { callId: "asked", tool: "ask", state: ToolMessageState.REQUIRES_ACTION });
  const say = (messageId: string) => messages.send({ spaceId, author, content: textContent("more"), messageId });
  /** What others say meanwhile. */
  const sayMuch = async (round?: string) => {
    const said = create(SpaceEventSchema, { event: { case: "memberJoined", value: author } });
    const payload = toBinary(SpaceEventSchema, said);
    for (let n = 0; n < 6_000; n += 1) bus.connection.publish(subjectOfSpace(spaceId), payload);
    await bus.connection.flush();
    if (round) await say(round);
  };
  const asked = await messages.recordTool({ spaceId, author, tool });
  for (const round of ["one", "two", "three"]) await sayMuch(round);
  const { state } = await bus.manager.streams.info("TOOLBUS_SPACES");
  expect(state.first_seq, "its first event is gone").toBeGreaterThan(Number(asked.sequence));

  const elsewhere = createMessages({ log: createStreamLog(bus), clock: systemClock });
  const found = await elsewhere.findTool(spaceId, "asked");
  expect(found).toMatchObject({ sequence: asked.sequence, content: { value: { state: tool.state } } });
  expect((await elsewhere.list(spaceId, { offset: 0, limit: 10, before: 0n })).messages[0]?.id).toBe(asked.id);
  await sayMuch();
  await elsewhere.recordTool({ spaceId, author, tool: { ...tool, state: ToolMessageState.COMPLETE } });
  expect(await elsewhere.findTool(spaceId, "asked"), "what answers it is not followed by how it stood").toMatchObject({
    content: { value: { state: ToolMessageState.COMPLETE } },
  });
  for (const round of ["four", "five"]) await sayMuch(round);
  expect(await createMessages({ log: createStreamLog(bus), clock: systemClock }).findTool(spaceId, "asked")).toBe(
    undefined,
  );
}, 60_000);
