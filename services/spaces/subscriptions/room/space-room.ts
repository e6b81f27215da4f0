import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import type { SpaceLog } from "../../space/space-log.ts";
import { subjectOfSpace } from "../stream-log.ts";
import { excessOf, sizesOf, targetOf } from "./fair-share.ts";

const STREAM = "TOOLBUS_SPACES";

export interface SpaceRoomParts {
  log: Pick<SpaceLog, "read">;
  /** Who created the space; empty for nobody, or for one that there is not. */
  creatorOf: (spaceId: string) => Promise<string>;
}

/**
 * Removes messages when room gets short: of the principals whose spaces hold the most, the oldest. What has not reached the inboxes stays,
 * and so does what follows a call that still runs or waits in its space. Gives how many spaces were cut.
 */
export async function makeSpaceRoom(bus: Bus, parts: SpaceRoomParts, signal: AbortSignal): Promise<number> {
  const target = await targetOf(bus, STREAM);
  if (target === undefined) return 0;
  const holders = new Map<string, string>();
  const bytesByHolder = new Map<string, number>();
  for await (const { subject, bytes } of sizesOf(bus, STREAM, signal)) {
    const holder = holders.get(subject) ?? (await holderOf(parts, subject));
    holders.set(subject, holder);
    bytesByHolder.set(holder, (bytesByHolder.get(holder) ?? 0) + bytes);
  }
  const excess = excessOf(bytesByHolder, target);
  const { ack_floor: delivered } = await bus.manager.consumers.info(STREAM, "spaces_to_inboxes");
  const openFrom = new Map<string, number>();
  const cuts = new Map<string, number>();
  for await (const { subject, sequence, bytes } of sizesOf(bus, STREAM, signal)) {
    const holder = holders.get(subject) ?? "";
    const left = excess.get(holder) ?? 0;
    if (left <= 0 || sequence > delivered.stream_seq) continue;
    const firstOpen = openFrom.get(subject) ?? (await firstOpenOf(parts, subject));
    openFrom.set(subject, firstOpen);
    if (sequence >= firstOpen) continue;
    excess.set(holder, left - bytes);
    cuts.set(subject, sequence);
  }
  for (const [subject, sequence] of cuts) {
    const purge = () => bus.manager.streams.purge(STREAM, { filter: subject, seq: sequence + 1 });
    await retryOnBus(bus.link, purge, { what: `making room in ${STREAM}` });
  }
  return cuts.size;
}

const spaceOf = (subject: string) => subject.slice(subjectOfSpace("").length);

/** A space that nobody has created is a holder of its own. */
async function holderOf({ creatorOf }: SpaceRoomParts, subject: string): Promise<string> {
  const creator = await creatorOf(spaceOf(subject));
  return creator === "" ? subject : `principal ${creator}`;
}

async function firstOpenOf({ log }: SpaceRoomParts, subject: string): Promise<number> {
  const { messages } = await log.read(spaceOf(subject));
  const open = messages.find(({ content }) => content.case === "tool" && !isOver(content.value.state));
  return open === undefined ? Number.POSITIVE_INFINITY : Number(open.sequence);
}

function isOver(state: ToolMessageState): boolean {
  return state === ToolMessageState.COMPLETE || state === ToolMessageState.ERROR;
}
