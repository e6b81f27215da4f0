import type { Space } from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Grantees } from "#runtime/rpc/access/grantees.ts";
import { type Caller, callerNamed, isServiceItself, SELF } from "#runtime/rpc/identity.ts";
import type { Sessions } from "../owners/sessions.ts";
import type { Membership } from "./membership.ts";

export type SpaceAccess = ReturnType<typeof createSpaceAccess>;

export interface SpaceAccessParts {
  membership: Pick<Membership, "space" | "spaces">;
  sessions: Pick<Sessions, "principalOf" | "findPrincipal">;
  grantees: Grantees;
}

/** SEC-2: for whom a space is. Being a member grants nothing. */
export function createSpaceAccess({ membership, sessions, grantees }: SpaceAccessParts) {
  const isCreator = ({ principal }: Space, caller: Caller) => principal !== "" && principal === caller.principal;
  const isFor = (space: Space, caller: Caller) =>
    isServiceItself(caller) ||
    isCreator(space, caller) ||
    grantees.isGranted(`space:${space.id}`, space.grants, caller.principal ?? "");

  /** The space. Refuses an unknown one with the names of those that are for the caller. */
  async function require(spaceId: string, caller: Caller): Promise<Space> {
    const space = await membership.space(spaceId, (other) => isFor(other, caller));
    if (!isCreator(space, caller)) await grantees.require(`space:${spaceId}`, space.grants, caller);
    return space;
  }

  /** Whether it is for the principal of the session; for that of one that is gone it is not. */
  async function isForSession(spaceId: string, sessionId: string): Promise<boolean> {
    const space = await membership.space(spaceId);
    if (isFor(space, callerNamed(""))) return true; // for all: no session has to be read
    const principal = await sessions.findPrincipal(sessionId);
    return principal !== undefined && isFor(space, callerNamed(principal));
  }

  return {
    require,
    isForSession,
    /** Refuses an agent of a session whose principal it is not for. */
    async requireSession(spaceId: string, sessionId: string): Promise<void> {
      if (await isForSession(spaceId, sessionId)) return;
      await require(spaceId, callerNamed(await sessions.principalOf(sessionId)));
    },
    /** The spaces that are for the caller, by id. */
    async list(caller: Caller): Promise<Space[]> {
      return (await membership.spaces()).filter((space) => isFor(space, caller));
    },
    /** Refuses whoever may not say for whom the space is. */
    requireGrantor(space: Space, caller: Caller): void {
      if (isServiceItself(caller) || caller.isOperator || isCreator(space, caller)) return;
      const text = `space "${space.id}" was created by somebody else: who created it, or an operator, says for whom it is`;
      refuse("permission_denied", text, { reason: "PRINCIPAL_NOT_OWNER" });
    },
  };
}

/** On whose behalf an agent of a session acts; nobody named is the service that asks. */
export function callerOfScope(principal: string): Caller {
  return principal === "" ? SELF : callerNamed(principal);
}
