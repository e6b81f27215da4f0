import { create } from "@bufbuild/protobuf";
import { JetStreamApiError } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { MemberKind, MemberSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { whileWaitedFor } from "#runtime/bus/link/waited.ts";
import { textContent } from "#runtime/content/text.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createFitting } from "../messages/message-size.ts";
import { createMessages } from "../messages/messages.ts";
import { createStreamLog, subjectOfSpace } from "./stream-log.ts";

const spaceId = "quiet";
const author = create(MemberSchema, { id: "alice", name: "alice", kind: MemberKind.PERSON });

test("TOOL-13 a space whose messages are all gone to make room takes the next one, also where it was read before", async () => {
  await using bus = await openTestBus();
  const log = createStreamLog(bus);
  const messages = createMessages({ log, clock: systemClock, fitted: createFitting(async () => "") });
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
  const reading = Array.from({ length: 4 }, () => whileWaitedFor(() => log.read(spaceId)));
  for (const { status } of await Promise.allSettled(reading)) expect(status).toBe("rejected");
  expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  isLed = true;
  expect((await whileWaitedFor(() => log.read(spaceId))).messages).toEqual([]);
}, 40_000);
