import { create } from "@bufbuild/protobuf";
import { type Member, MemberKind, MemberSchema, type Space } from "#gen/toolbus/space/v1/space_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";
import { nameInLine } from "../inbox/inbox-text.ts";
import type { Owner } from "../owners/owner.ts";

export function agentMember({ sessionId, agent }: Owner): Member {
  return create(MemberSchema, { id: `session:${sessionId}:${agent}`, name: agent, kind: MemberKind.AGENT, sessionId });
}

/** The names that lines of an inbox begin with: a person of that name could pass a message off as one of those. */
const reservedNames = new Set(["tool result", "plan"]);

/** SEC-2: a name that was chosen stands beside its principal, so that nobody speaks as another one. `local` is everybody. */
export function personMember(principal: string, name: string): Member {
  if (reservedNames.has(nameInLine(name).toLowerCase()))
    refuseField("person_name", `"${name}" is no name for a person`);
  const isOwn = ["", principal].includes(name);
  const shown = isOwn || principal === LOCAL_PRINCIPAL ? name : `${name} (${principal})`;
  return create(MemberSchema, { id: principal, name: shown || principal, kind: MemberKind.PERSON });
}

export function memberOf(space: Space, id: string): Member | undefined {
  return space.members.find((member) => member.id === id);
}

/** The agent that an agent's membership stands for. */
export function ownerOf(agent: Member): Owner {
  return { sessionId: agent.sessionId, agent: agent.name };
}

/** Undefined when nothing changes. */
export function withMember(space: Space, member: Member): Space | undefined {
  const known = memberOf(space, member.id);
  if (known?.name === member.name) return undefined;
  return { ...space, members: [...space.members.filter((other) => other !== known), member] };
}

/** Undefined when nothing changes. */
export function withoutMember(space: Space, id: string): Space | undefined {
  const members = space.members.filter((member) => member.id !== id);
  return members.length === space.members.length ? undefined : { ...space, members };
}
