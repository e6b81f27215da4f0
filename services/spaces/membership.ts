import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Member,
  MemberKind,
  MemberSchema,
  type Space,
  type SpaceEvent,
  SpaceEventSchema,
  SpaceSchema,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { appendDecided, type SpaceLog } from "./space-log.ts";
import type { Table } from "./table.ts";

/** Who is where. A session's agent is in one space at a time; its entry in `activeSpaces` decides, lists of members follow. */
export interface Membership {
  /** An existing space is given as it is. */
  createSpace(id: string, title: string): Promise<Space>;
  /** Refuses an unknown one with the names of those that exist. */
  space(id: string): Promise<Space>;
  spaces(): Promise<Space[]>;
  /** Leaves the space where the session is, if it is another one. */
  enter(spaceId: string, agent: Member): Promise<Space>;
  /** Gives the space that was left. */
  leave(sessionId: string): Promise<string | undefined>;
  activeSpace(sessionId: string): Promise<string | undefined>;
  /** Adds a person, or an agent that is shown there, who is no member yet. */
  join(spaceId: string, member: Member): Promise<void>;
  /** The agents in a space, but for the author. */
  recipients(spaceId: string, author: Member | undefined): Promise<Member[]>;
}

export interface MembershipParts {
  spaces: Table<Space>;
  activeSpaces: Table<string>;
  log: SpaceLog;
  clock: Clock;
}

export function agentMember(sessionId: string, agent: string): Member {
  return create(MemberSchema, { id: `session:${sessionId}`, name: agent, kind: MemberKind.AGENT, sessionId });
}

export function personMember(principal: string, name: string): Member {
  return create(MemberSchema, { id: principal, name: name || principal, kind: MemberKind.PERSON });
}

export function createMembership({ spaces, activeSpaces, log, clock }: MembershipParts): Membership {
  const list = async () => (await spaces.list()).sort((a, b) => a.id.localeCompare(b.id));
  const find = async (id: string) => (await spaces.read(id)) ?? refuseUnknown(id, await list());

  const announce = async (spaceId: string, event: SpaceEvent["event"]) => {
    await appendDecided(log, spaceId, () => ({ append: create(SpaceEventSchema, { event }) }));
  };
  const join = async (spaceId: string, member: Member) => {
    const before = await spaces.change(spaceId, (space) => space && withMember(space, member));
    if (before && memberOf(before, member.id) === undefined) {
      await announce(spaceId, { case: "memberJoined", value: member });
    }
  };
  const part = async (spaceId: string, memberId: string) => {
    const before = await spaces.change(spaceId, (space) => space && withoutMember(space, memberId));
    const member = before && memberOf(before, memberId);
    if (member) await announce(spaceId, { case: "memberLeft", value: member });
  };

  return {
    space: find,
    spaces: list,
    join,
    async createSpace(id, title) {
      const space = create(SpaceSchema, { id, title, createdAt: timestampFromMs(clock.now()) });
      return (await spaces.change(id, (current) => (current ? undefined : space))) ?? space;
    },
    async enter(spaceId, agent) {
      await find(spaceId);
      const previous = await activeSpaces.change(agent.sessionId, () => spaceId);
      if (previous !== undefined && previous !== spaceId) await part(previous, agent.id);
      await join(spaceId, agent);
      return find(spaceId);
    },
    async leave(sessionId) {
      const left = await activeSpaces.remove(sessionId);
      if (left !== undefined) await part(left, agentMember(sessionId, "").id);
      return left;
    },
    activeSpace: (sessionId) => activeSpaces.read(sessionId),
    async recipients(spaceId, author) {
      const members = (await spaces.read(spaceId))?.members ?? [];
      const agents = members.filter((member) => member.kind === MemberKind.AGENT && member.id !== author?.id);
      const active = await Promise.all(agents.map((agent) => activeSpaces.read(agent.sessionId)));
      return agents.filter((_, index) => active[index] === spaceId);
    },
  };
}

const namedSpaces = 20;

function refuseUnknown(id: string, known: Space[]): never {
  const names = known.slice(0, namedSpaces).map((space) => space.id);
  const more = known.length > names.length ? ` and ${known.length - names.length} more` : "";
  const existing = names.length === 0 ? "there are none yet" : `there are ${names.join(", ")}${more}`;
  return refuse("not_found", `no space "${id}"; ${existing}`, { reason: "SPACE_NOT_FOUND" });
}

export function memberOf(space: Space, id: string): Member | undefined {
  return space.members.find((member) => member.id === id);
}

/** Undefined when nothing changes. */
function withMember(space: Space, member: Member): Space | undefined {
  const known = memberOf(space, member.id);
  if (known?.name === member.name) return undefined;
  return { ...space, members: [...space.members.filter((other) => other !== known), member] };
}

function withoutMember(space: Space, id: string): Space | undefined {
  const members = space.members.filter((member) => member.id !== id);
  return members.length === space.members.length ? undefined : { ...space, members };
}
