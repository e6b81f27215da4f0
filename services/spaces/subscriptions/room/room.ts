import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import type { Sessions } from "../../owners/sessions.ts";
import { findCrowding } from "./inbox-room.ts";
import { makeSpaceRoom, type SpaceRoomParts } from "./space-room.ts";

const PAUSE_MS = 10_000;

export interface SharedRoom extends AsyncDisposable {
  /** Whether the session's principal has its share of all inboxes, and room is short. */
  isCrowding(sessionId: string): Promise<boolean>;
}

export interface SharedRoomParts extends SpaceRoomParts {
  sessions: Pick<Sessions, "findPrincipal">;
  onFault: (fault: string) => void;
}

/** Looks again and again whether there is room for each in the streams of spaces and inboxes. */
export function openSharedRoom(bus: Bus, parts: SharedRoomParts): SharedRoom {
  const { sessions, onFault } = parts;
  const principalOf = (sessionId: string) => sessions.findPrincipal(sessionId);
  let crowding: ReadonlySet<string> = new Set();
  const stack = new AsyncDisposableStack();
  const look = (what: string, work: (signal: AbortSignal) => Promise<unknown>) => {
    const onError = (error: unknown) =>
      onFault(`the room of ${what} could not be looked at: ${messageFromUnknown(error)}`);
    stack.use(openPeriodic({ everyMs: PAUSE_MS, work, onError }));
  };
  look("inboxes", async (signal) => {
    const before = crowding.size;
    crowding = await findCrowding(bus, principalOf, signal);
    if (before === 0 && crowding.size > 0) onFault(`TOOLBUS_INBOX has no more room for ${[...crowding].join(", ")}`);
  });
  look("spaces", async (signal) => {
    const cut = await makeSpaceRoom(bus, parts, signal);
    if (cut > 0) onFault(`TOOLBUS_SPACES was short of room: the oldest messages of ${cut} spaces are gone`);
  });
  return {
    isCrowding: async (sessionId) => crowding.size > 0 && crowding.has((await principalOf(sessionId)) ?? ""),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
