import { type Space, SpaceSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { codecOf } from "#runtime/bus/buckets/bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { type Crowding, openCrowding } from "#runtime/bus/room/crowding.ts";
import { openGivingWay } from "#runtime/bus/room/give-way.ts";
import { type SessionShares, sharesByHeader, sharesBySession } from "#runtime/bus/room/shares.ts";
import type { Sessions } from "../../owners/sessions.ts";
import { type SpaceRoomParts, spaceShares } from "./space-room.ts";

export interface SharedRoom extends AsyncDisposable {
  /** Whether the session's principal has its share of all inboxes, and room is short. */
  isCrowding(sessionId: string, bytes: number): Promise<boolean>;
  /** Refuses to remember more for a session whose principal has its share of all memory. */
  requireMemory(sessionId: string, bytes: number): Promise<void>;
  /** Refuses a principal that has its share of all spaces. */
  requireSpace(principal: string, bytes: number): void;
}

/** Their titles, members and grants; messages are in a stream. */
export const SPACES = {
  bucket: "toolbus_spaces",
  prefix: "",
  codec: codecOf(SpaceSchema),
  holderOf: ({ principal }: Space) => principal,
} as const;
export const INBOXES = { stream: "TOOLBUS_INBOX", prefix: "toolbus.inbox." };
export const MEMORY = { stream: "KV_toolbus_memory", prefix: "$KV.toolbus_memory." };

export interface SharedRoomParts extends SpaceRoomParts {
  sessions: Pick<Sessions, "findPrincipal">;
  onFault: (fault: string) => void;
}

/** Looks again and again whether there is room for each in what the service keeps. */
export function openSharedRoom(bus: Bus, parts: SharedRoomParts): SharedRoom {
  const { onFault, sessions } = parts;
  const { findPrincipal } = sessions;
  const stack = new AsyncDisposableStack();
  const crowding = (where: Omit<SessionShares, "findPrincipal">, words: { holds: string; remedy: string }): Crowding =>
    stack.use(openCrowding(bus, { ...sharesBySession(bus, { ...where, findPrincipal }), ...words, onFault }));
  const inboxes = crowding(INBOXES, { holds: "events", remedy: "let agents read what waits" }); // which is never removed
  const memory = crowding(MEMORY, {
    holds: "memory",
    remedy: "delete entries, or close sessions that nobody uses",
  });
  const words = { holds: "spaces", remedy: "use those that there are" };
  const spaces = stack.use(openCrowding(bus, { ...sharesByHeader(bus, SPACES), ...words, onFault }));
  stack.use(openGivingWay(bus, { ...spaceShares(bus, parts), holds: "messages", onFault }));
  const principalOf = async (sessionId: string) => (await findPrincipal(sessionId)) ?? "";
  return {
    async isCrowding(sessionId, bytes) {
      inboxes.expect(bytes);
      return inboxes.hasAnybody() && inboxes.has(await principalOf(sessionId));
    },
    async requireMemory(sessionId, bytes) {
      memory.expect(bytes);
      if (memory.hasAnybody()) memory.requireRoom(await principalOf(sessionId));
    },
    requireSpace: (principal, bytes) => spaces.requireRoom(principal, bytes),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
