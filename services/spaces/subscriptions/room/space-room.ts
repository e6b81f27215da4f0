import type { Bus } from "#runtime/bus/bus.ts";
import type { GivingWay } from "#runtime/bus/room/give-way.ts";
import type { SpaceLog } from "../../space/space-log.ts";
import { isFinal } from "../../space/space-state.ts";
import { subjectOfSpace } from "../stream-log.ts";

const STREAM = "TOOLBUS_SPACES";

export interface SpaceRoomParts {
  log: Pick<SpaceLog, "read">;
  /** Who created the space; empty for nobody, or for one that there is not. */
  creatorOf: (spaceId: string) => Promise<string>;
}

/** What has not reached the inboxes stays, and so does what follows a call that still runs or waits in its space. */
export function spaceShares(bus: Bus, parts: SpaceRoomParts): GivingWay {
  const firstKept = async (subject: string) => {
    const { ack_floor: delivered } = await bus.manager.consumers.info(STREAM, "spaces_to_inboxes");
    return Math.min(delivered.stream_seq + 1, await firstOpenOf(parts, subject));
  };
  return { stream: STREAM, holderOf: (subject) => holderOf(parts, subject), firstKept };
}

const spaceOf = (subject: string) => subject.slice(subjectOfSpace("").length);

/** A space that nobody has created is a holder of its own. */
async function holderOf({ creatorOf }: SpaceRoomParts, subject: string): Promise<string> {
  const creator = await creatorOf(spaceOf(subject));
  return creator === "" ? subject : `principal ${creator}`;
}

async function firstOpenOf({ log }: SpaceRoomParts, subject: string): Promise<number> {
  const { messages } = await log.read(spaceOf(subject));
  const open = messages.find(({ content }) => content.case === "tool" && !isFinal(content.value.state));
  return open === undefined ? Number.POSITIVE_INFINITY : Number(open.sequence);
}
