/**
 * Who is where. Three records speak of it, each written after the one that it relies on, so that whoever died in between
 * left nothing that a repetition does not mend.
 *
 * MEMBER1  The log of a space is told first that somebody joins or leaves, once: an event is appended only if the log does not
 *     say so already. The list of members follows.
 * MEMBER2  An agent is in one space at a time, the one that its entry in `activeSpaces` names. It joins the next space and
 *     leaves the last one before the entry changes.
 * MEMBER3  Where the records differ, the entry decides: an agent hears what is said where it is active.
 */

import { create, equals, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Grants, GrantsSchema } from "#gen/toolbus/access/v1/access_pb.ts";
import {
  type Member,
  MemberKind,
  type Space,
  type SpaceEvent,
  SpaceEventSchema,
  SpaceSchema,
} from "#gen/toolbus/space/v1/space_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { keyOf, type Owner } from "../owners/owner.ts";
import { agentMember, memberOf, ownerOf, withMember, withoutMember } from "./member.ts";
import { appendDecided, type SpaceLog } from "./space-log.ts";
import type { SpaceState } from "./space-state.ts";

export type Membership = ReturnType<typeof createMembership>;

export interface MembershipParts {
  spaces: Bucket<Space>;
  activeSpaces: Bucket<string>;
  log: SpaceLog;
  /** Refuses a principal that has its share of all spaces; nobody is refused unless told. */
  requireRoom?: (principal: string, bytes: number) => void;
  clock: Clock;
}

/** Members beyond that do not join; the rest of a record is for grants. */
const MOST_BYTES = 768 * 1_024;

type NewSpace = Pick<Space, "id" | "title" | "principal"> & { grants?: Grants | undefined };

export function createMembership({ spaces, activeSpaces, log, clock, requireRoom = () => {} }: MembershipParts) {
  /** By id. */
  const list = async (): Promise<Space[]> => {
    const stored = await Array.fromAsync(spaces.list());
    return stored.map(({ value }) => value).sort((a, b) => (a.id < b.id ? -1 : 1));
  };
  /** Refuses an unknown one with the names of those that exist and are shown to who asks. */
  const find = async (id: string, isShown: (space: Space) => boolean = () => true) =>
    (await spaces.read(id))?.value ?? refuseUnknown(id, (await list()).filter(isShown));
  const activeSpace = async (agent: Owner) => (await activeSpaces.read(keyOf(agent)))?.value;

  const announce = async (
    spaceId: string,
    event: SpaceEvent["event"],
    isKnown: (members: SpaceState["membersById"]) => boolean,
  ) => {
    await appendDecided(log, spaceId, ({ membersById }) =>
      isKnown(membersById) ? { keep: undefined } : { append: create(SpaceEventSchema, { event }) },
    );
  };
  /** Adds a person, or an agent that is active there, who is no member yet. */
  const join = async (spaceId: string, member: Member): Promise<Space> => {
    const space = await find(spaceId);
    const joined = withMember(space, member);
    if (joined === undefined) return space;
    if (toBinary(SpaceSchema, joined).length > MOST_BYTES) refuseFull(space); // before the log is told
    const isKnown = (members: SpaceState["membersById"]) => members.get(member.id)?.name === member.name;
    await announce(spaceId, { case: "memberJoined", value: member }, isKnown); // MEMBER1
    await spaces.update(spaceId, (current) => current && withMember(current, member));
    return find(spaceId);
  };
  /** Takes a person out; gives whether there was one. */
  const part = async (spaceId: string, memberId: string): Promise<boolean> => {
    const space = (await spaces.read(spaceId))?.value;
    const member = space && memberOf(space, memberId);
    if (member === undefined) return false;
    await announce(spaceId, { case: "memberLeft", value: member }, (members) => !members.has(memberId)); // MEMBER1
    await spaces.update(spaceId, (current) => current && withoutMember(current, memberId));
    return true;
  };

  return {
    space: find,
    spaces: list,
    join,
    part,
    /** An existing space of that title is given as it is; one of another title is refused. */
    async createSpace({ id, title, principal, grants }: NewSpace): Promise<{ space: Space; isNew: boolean }> {
      const createTime = timestampFromMs(clock.now());
      const space = create(SpaceSchema, { ...{ id, title, principal, createTime }, ...(grants && { grants }) });
      const { value: standing = space, hasChanged } = await spaces.update(id, (current) => {
        if (current !== undefined) return undefined;
        requireRoom(principal, toBinary(SpaceSchema, space).length);
        return space;
      });
      if (standing.title !== title) refuseOther(standing, "another title");
      // who takes it for a space of its own would speak before those whom somebody else lets in
      const isAsGranted = grants === undefined || (standing.grants && equals(GrantsSchema, standing.grants, grants));
      if (standing.principal !== principal && !isAsGranted) refuseOther(standing, "other grants, of somebody else");
      return { space: standing, isNew: hasChanged };
    },
    /** Says for whom it is. */
    async setGrants(id: string, grants: Grants | undefined): Promise<Space> {
      const { value } = await spaces.update(id, (current) => {
        if (current === undefined) return undefined;
        const bytes = bytesOf(grants);
        if (bytes > bytesOf(current.grants)) requireRoom(current.principal, bytes); // fewer make room
        const { grants: _, ...rest } = current;
        return grants ? { ...rest, grants } : rest;
      });
      return value ?? find(id);
    },
    /** Leaves the space where the agent is, if it is another one. */
    async enter(spaceId: string, agent: Owner): Promise<Space> {
      const member = agentMember(agent);
      const space = await join(spaceId, member);
      const last = await activeSpace(agent);
      if (last !== undefined && last !== spaceId) await part(last, member.id); // MEMBER2
      const { before: replaced } = await activeSpaces.update(keyOf(agent), (current) =>
        current === spaceId ? undefined : spaceId,
      );
      const isOther = replaced !== undefined && replaced !== last && replaced !== spaceId;
      if (isOther) await part(replaced, member.id); // entered meanwhile by another call of the agent
      return space;
    },
    /** Gives whether the agent was there. One that has entered another space since stays in that one. */
    async leave(spaceId: string, agent: Owner): Promise<boolean> {
      const wasMember = await part(spaceId, agentMember(agent).id);
      const wasActive = (await activeSpace(agent)) === spaceId;
      if (wasActive) await activeSpaces.remove(keyOf(agent), (current) => current === spaceId); // MEMBER2
      return wasMember || wasActive;
    },
    activeSpace,
    /** The agents in a space, but for the author. */
    async recipients(spaceId: string, author: Member | undefined): Promise<Owner[]> {
      const members = (await spaces.read(spaceId))?.value.members ?? [];
      const agents = members
        .filter((member) => member.kind === MemberKind.AGENT && member.id !== author?.id)
        .map((member) => ownerOf(member));
      const active = await Promise.all(agents.map(activeSpace));
      return agents.filter((_, index) => active[index] === spaceId); // MEMBER3
    },
  };
}

function bytesOf(grants: Grants | undefined): number {
  return grants === undefined ? 0 : toBinary(GrantsSchema, grants).length;
}

/** Its title is for those who may see the space. */
function refuseOther({ id }: Space, difference: string): never {
  return refuse("already_exists", `there is a space "${id}" with ${difference}: choose another id`, {
    reason: "SPACE_ALREADY_EXISTS",
    metadata: { space_id: id },
  });
}

function refuseFull({ id, members }: Space): never {
  const text = `space "${id}" is full: it has ${members.length} members. It has room when one leaves, or make another space`;
  return refuse("resource_exhausted", text, { reason: "STORE_FULL", metadata: { store: `space ${id}` } });
}

const namedSpaces = 20;

function refuseUnknown(id: string, known: Space[]): never {
  const names = known.slice(0, namedSpaces).map((space) => space.id);
  const more = known.length > names.length ? ` and ${known.length - names.length} more` : "";
  const existing = names.length === 0 ? "there are none yet" : `there are ${names.join(", ")}${more}`;
  const remedy = `"toolbus spaces create ${id}", or CreateSpace, makes it`;
  return refuse("not_found", `no space "${id}"; ${existing}. ${remedy}`, { reason: "SPACE_NOT_FOUND" });
}
