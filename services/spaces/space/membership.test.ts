import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { GrantsSchema } from "#gen/toolbus/access/v1/access_pb.ts";
import type { Space } from "#gen/toolbus/space/v1/space_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { textContent } from "#runtime/content/text.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { createMessages } from "../messages/messages.ts";
import { createMemoryLog, type Death, immortal, writeOrDie } from "../testing/memory-log.ts";
import { agentMember, personMember } from "./member.ts";
import { createMembership } from "./membership.ts";

const agent = { sessionId: "s", agent: "a" };
const person = personMember("eve", "eve");

async function createWorld() {
  const death = immortal();
  const clock = createManualClock();
  const { log, eventsOf } = createMemoryLog(death);
  const dying = { change: (store: () => void) => writeOrDie(death, store) };
  const buckets = { spaces: createMemoryBucket<Space>(dying), activeSpaces: createMemoryBucket<string>(dying) };
  const membership = createMembership({ ...buckets, log, clock });
  const messages = createMessages({ log, clock });
  for (const id of ["one", "two"]) await membership.createSpace({ id, title: "", principal: "" });
  const kindsOf = (spaceId: string) => eventsOf(spaceId).map(({ event }) => event.case);
  const namesOf = async (spaceId: string) => (await membership.space(spaceId)).members.map(({ name }) => name);
  return { death, membership, messages, kindsOf, namesOf };
}

type World = Awaited<ReturnType<typeof createWorld>>;

/** Does it as often as it has writes to die at, before and after each, and once more each time. */
async function repeatAfterEachDeath(
  prepare: (world: World) => Promise<unknown>,
  deed: (world: World) => Promise<unknown>,
  check: (world: World) => Promise<void>,
): Promise<number> {
  for (let deaths = 0; ; deaths++) {
    const world = await createWorld();
    await prepare(world);
    const death: Death = { writesLeft: Math.floor(deaths / 2), isAfterStoring: deaths % 2 === 1 };
    Object.assign(world.death, death);
    const hasDied = await deed(world).then(
      () => false,
      () => true,
    );
    Object.assign(world.death, immortal());
    await deed(world);
    await check(world);
    if (!hasDied) return deaths;
  }
}

describe("who is where, whenever a process dies", () => {
  test("TOOL-13 an agent that enters another space joins it once and leaves the other once", async () => {
    const tried = await repeatAfterEachDeath(
      ({ membership }) => membership.enter("one", agent),
      ({ membership }) => membership.enter("two", agent),
      async ({ membership, kindsOf, namesOf }) => {
        expect([kindsOf("one"), kindsOf("two")]).toEqual([["memberJoined", "memberLeft"], ["memberJoined"]]);
        expect([await namesOf("one"), await namesOf("two")]).toEqual([[], ["a"]]);
        expect(await membership.activeSpace(agent)).toBe("two");
        expect(await membership.recipients("two", undefined)).toEqual([agent]);
      },
    );
    expect(tried).toBe(10); // two records of each space and the entry, before and after
  });

  test("TOOL-13 an agent that leaves has left once, for those who watch too", async () => {
    await repeatAfterEachDeath(
      ({ membership }) => membership.enter("one", agent),
      ({ membership }) => membership.leave("one", agent),
      async ({ membership, kindsOf, namesOf }) => {
        expect(kindsOf("one")).toEqual(["memberJoined", "memberLeft"]);
        expect(await namesOf("one")).toEqual([]);
        expect(await membership.activeSpace(agent)).toBeUndefined();
      },
    );
  });

  test("TOOL-13 a person joins and leaves once", async () => {
    await repeatAfterEachDeath(
      async () => {},
      ({ membership }) => membership.join("one", person),
      async ({ kindsOf, namesOf }) =>
        expect([kindsOf("one"), await namesOf("one")]).toEqual([["memberJoined"], ["eve"]]),
    );
    await repeatAfterEachDeath(
      ({ membership }) => membership.join("one", person),
      ({ membership }) => membership.part("one", "eve"),
      async ({ kindsOf, namesOf }) => expect([kindsOf("one")[1], await namesOf("one")]).toEqual(["memberLeft", []]),
    );
  });

  test("TOOL-13 a message that is repeated because nobody heard of it stands once", async () => {
    await repeatAfterEachDeath(
      async () => {},
      ({ messages }) => messages.send({ spaceId: "one", author: person, content: textContent("x"), messageId: "m" }),
      async ({ kindsOf }) => expect(kindsOf("one")).toEqual(["messagePosted"]),
    );
  });

  test("TOOL-13 what is said under the id of another message is not lost: it is refused", async () => {
    const { messages } = await createWorld();
    const say = (text: string) =>
      messages.send({ spaceId: "one", author: person, content: textContent(text), messageId: "m" });
    const { id } = await say("x");
    expect((await say("x")).id).toBe(id);
    await expect(say("y")).rejects.toMatchObject({ code: "already_exists", reason: "MESSAGE_ID_REUSED" });
  });

  test("SEC-2 who makes a space for some does not get one that somebody else has made for others", async () => {
    const { membership } = await createWorld();
    const make = (principal: string, ...principals: string[]) => {
      const grants = principals.length > 0 ? create(GrantsSchema, { principals }) : undefined;
      return membership.createSpace({ id: "lobby", title: "", principal, grants });
    };
    await make("mallory");
    await expect(make("alice", "alice")).rejects.toMatchObject({ reason: "SPACE_ALREADY_EXISTS" });
    expect((await make("alice")).space.principal, "whoever asks for none finds it").toBe("mallory");
    expect((await make("mallory", "mallory")).space.grants, "as it stands").toBeUndefined();
  });

  test("TOOL-13 an agent hears what is said where it is active, though it died on its way to another space", async () => {
    const { death, membership, namesOf } = await createWorld();
    await membership.enter("one", agent);
    Object.assign(death, { writesLeft: 2 });
    await expect(membership.enter("two", agent)).rejects.toThrow(/died/);
    expect([await namesOf("one"), await namesOf("two")]).toEqual([["a"], ["a"]]);
    expect(await membership.recipients("two", undefined)).toEqual([]);
    expect(await membership.recipients("one", undefined)).toEqual([agent]);
  });

  test("TOOL-12 an agent that enters two spaces at once is in one of them", async () => {
    const { membership, namesOf } = await createWorld();
    await Promise.all(["one", "two"].map((spaceId) => membership.enter(spaceId, agent)));
    const active = await membership.activeSpace(agent);
    expect(await membership.recipients(active ?? "", undefined)).toEqual([agent]);
    const other = active === "one" ? "two" : "one";
    expect(await membership.recipients(other, agentMember({ ...agent, agent: "b" }))).toEqual([]);
    expect(await namesOf(active ?? "")).toEqual(["a"]);
  });
});

test("SEC-5 a space takes members up to a size, says so to the next one, and tells nobody that it joined", async () => {
  const { membership, kindsOf, namesOf } = await createWorld();
  const title = "t".repeat(767 * 1_024); // instead of thousands of members
  await membership.createSpace({ id: "large", title, principal: "" });
  const longNamed = (n: number) => personMember(`${n}`.padEnd(128, "p"), "é".repeat(256));
  await membership.join("large", longNamed(1));
  const refused = {
    code: "resource_exhausted",
    reason: "STORE_FULL",
    message: expect.stringContaining("has 1 members"),
  };
  await expect(membership.join("large", longNamed(2))).rejects.toMatchObject(refused);
  expect([kindsOf("large"), await namesOf("large")].map(({ length }) => length)).toEqual([1, 1]);
  await membership.join("large", longNamed(1));
  await membership.part("large", longNamed(1).id);
  await membership.join("large", longNamed(2));
});
