import { clone } from "@bufbuild/protobuf";
import { type SpaceEvent, SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { SpaceLog } from "../space/space-log.ts";
import { emptySpace, eventAt, foldEvent } from "../space/space-state.ts";

/** When the process dies: before a write is stored, or after it was and before anybody was told. */
export interface Death {
  /** Writes that are still stored and told. */
  writesLeft: number;
  isAfterStoring: boolean;
}

export function immortal(): Death {
  return { writesLeft: Number.POSITIVE_INFINITY, isAfterStoring: false };
}

/** Stores, or dies as it is told. */
export function writeOrDie(death: Death, store: () => void): void {
  const isDying = death.writesLeft-- <= 0;
  if (!isDying || (death.isAfterStoring && death.writesLeft === -1)) store();
  if (isDying) throw new Error("the process died");
}

/** Logs of spaces in memory. */
export function createMemoryLog(death: Death = immortal()) {
  const eventsBySpace = new Map<string, SpaceEvent[]>();
  const eventsOf = (spaceId: string) => eventsBySpace.get(spaceId) ?? [];
  const log: SpaceLog = {
    async read(spaceId) {
      const state = emptySpace();
      for (const event of eventsOf(spaceId)) foldEvent(state, clone(SpaceEventSchema, event));
      return state;
    },
    async append(spaceId, after, event) {
      const events = eventsOf(spaceId);
      if (BigInt(events.length) !== after) return undefined;
      const stored = eventAt(clone(SpaceEventSchema, event), after + 1n);
      writeOrDie(death, () => eventsBySpace.set(spaceId, [...events, stored]));
      return clone(SpaceEventSchema, stored);
    },
    async *follow(spaceId, fromSequence = BigInt(eventsOf(spaceId).length + 1)) {
      for (const value of eventsOf(spaceId)) if (value.sequence >= fromSequence) yield { case: "event", value };
    },
  };
  return { log, eventsOf };
}
