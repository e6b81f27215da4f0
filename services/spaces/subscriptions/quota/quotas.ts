import { type Space, SpaceSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { codecOf } from "#runtime/bus/buckets/bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { type EvictionOptions, openEviction } from "#runtime/bus/quota/eviction.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { usageByHeader, usageBySession } from "#runtime/bus/quota/usage.ts";
import type { Sessions } from "../../owners/sessions.ts";
import type { SpaceLog } from "../../space/space-log.ts";
import { isFinal } from "../../space/space-state.ts";
import { subjectOfSpace } from "../stream-log.ts";

/** Their titles, members and grants; messages are in a stream. */
export const SPACES = {
  bucket: "toolbus_spaces",
  prefix: "",
  codec: codecOf(SpaceSchema),
  holderOf: ({ principal }: Space) => principal,
} as const;
const MESSAGES = "TOOLBUS_SPACES";
export const INBOXES = { stream: "TOOLBUS_INBOX", prefix: "toolbus.inbox." };
export const MEMORY = { stream: "KV_toolbus_memory", prefix: "$KV.toolbus_memory." };

interface SpaceEvictionParts {
  log: Pick<SpaceLog, "read">;
  /** Who created the space; empty for nobody, or for one that there is not. */
  creatorOf: (spaceId: string) => Promise<string>;
}

export interface QuotaParts extends SpaceEvictionParts {
  sessions: Pick<Sessions, "findPrincipal">;
  onFault: (fault: string) => void;
}

/** The quotas of principals in what the service keeps, and the eviction of old messages. */
export function openQuotas(bus: Bus, parts: QuotaParts) {
  const { onFault, sessions } = parts;
  const { findPrincipal } = sessions;
  const stack = new AsyncDisposableStack();
  const quota = (usage: ReturnType<typeof usageByHeader>, holds: string, remedy: string) =>
    stack.use(openQuota(bus, { ...usage, holds, remedy, onFault }));
  const bySession = (where: typeof INBOXES) => usageBySession(bus, { ...where, findPrincipal });
  const inboxes = quota(bySession(INBOXES), "events", "let agents read what waits"); // which is never removed
  const memory = quota(bySession(MEMORY), "memory", "delete entries, or close sessions that nobody uses");
  const spaces = quota(usageByHeader(bus, SPACES), "spaces", "use those that there are");
  stack.use(openEviction(bus, { ...spaceEviction(bus, parts), holds: "messages", onFault }));
  const principalOf = async (sessionId: string) => (await findPrincipal(sessionId)) ?? "";
  return {
    /** Whether the session's principal is over its quota of all inboxes. */
    isOverQuota: (sessionId: string, bytes: number) => inboxes.isOver(() => principalOf(sessionId), bytes),
    /** Refuses to remember more for a session whose principal is over its quota of all memory. */
    async requireMemory(sessionId: string, bytes: number): Promise<void> {
      const isOver = await memory.isOver(() => principalOf(sessionId), bytes);
      if (isOver) memory.requireRoom(await principalOf(sessionId));
    },
    /** Refuses a principal that is over its quota of all spaces. */
    requireSpace: spaces.requireRoom,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** What has not reached the inboxes stays, and so does what follows a call that still runs or waits in its space. */
export function spaceEviction(bus: Bus, { log, creatorOf }: SpaceEvictionParts): EvictionOptions {
  const spaceOf = (subject: string) => subject.slice(subjectOfSpace("").length);
  return {
    stream: MESSAGES,
    /** A space that nobody has created is a holder of its own. */
    async holderOf(subject) {
      const creator = await creatorOf(spaceOf(subject));
      return creator === "" ? subject : `principal ${creator}`;
    },
    async firstKept(subject) {
      const { ack_floor: delivered } = await bus.manager.consumers.info(MESSAGES, "spaces_to_inboxes");
      const { messages } = await log.read(spaceOf(subject));
      const open = messages.find(({ content }) => content.case === "tool" && !isFinal(content.value.state));
      return Math.min(delivered.stream_seq + 1, Number(open?.sequence ?? Number.POSITIVE_INFINITY));
    },
  };
}
