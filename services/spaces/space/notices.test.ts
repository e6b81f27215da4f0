import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type SpaceEvent, SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { createNotices } from "./notices.ts";

const agents = ["full", "free"].map((sessionId) => ({ sessionId, agent: "a" }));

function openNotices(reason: "INBOX_FULL" | "STORE_FULL") {
  const delivered: string[] = [];
  const warnings: unknown[] = [];
  const deliver = createNotices({
    membership: { recipients: async () => agents },
    access: { isForSession: async () => true },
    inbox: {
      async deliver({ sessionId }) {
        if (sessionId === "full") throw new Failure("resource_exhausted", "there is no room", { reason });
        delivered.push(sessionId);
        return { duplicate: false };
      },
    },
    logger: { warn: (details) => warnings.push(details) },
  });
  return { deliver, delivered, warnings };
}

function said(): SpaceEvent {
  const value = {
    id: "m",
    spaceId: "hall",
    content: { case: "text" as const, value: { content: textContent("hello") } },
  };
  return create(SpaceEventSchema, { event: { case: "messagePosted", value } });
}

test("SEC-6 an inbox that is full keeps no message from the inboxes of others, and the log tells of it", async () => {
  const { deliver, delivered, warnings } = openNotices("INBOX_FULL");
  await deliver(said());
  expect(delivered).toEqual(["free"]);
  expect(warnings).toMatchObject([{ sessionId: "full", spaceId: "hall" }]);
});

test("BUS-4 a message that no store takes is delivered later", async () => {
  const { deliver } = openNotices("STORE_FULL");
  await expect(deliver(said())).rejects.toMatchObject({ reason: "STORE_FULL" });
});
