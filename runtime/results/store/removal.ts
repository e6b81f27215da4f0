/** results-3  A put that was cut off leaves chunks that no entry names; they go when nothing was added to them for an hour. */

import type { ObjectInfo } from "@nats-io/obj";
import { standingMessages } from "../../bus/buckets/listing.ts";
import type { Bus } from "../../bus/bus.ts";
import type { StoredMessage } from "../../bus/streams/read.ts";
import { type Clock, systemClock } from "../../time/clock.ts";
import { chunksOf, resultFrom, type StoredResult, store } from "./store.ts";

const stream = `OBJ_${store}`;
/** The name in base64 of URLs, with its padding. */
const nameIn64 = (name: string) => Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
const entryOf = (reference: string) => `$O.${store}.M.${nameIn64(reference)}`;
const infoFrom = ({ data }: StoredMessage): ObjectInfo => JSON.parse(Buffer.from(data).toString());
const cutOffMs = 3_600_000;

export interface ResultRemoval {
  /** All that are kept. */
  list(): Promise<StoredResult[]>;
  remove(stored: StoredResult): Promise<void>;
  /** results-3; gives how many there were. */
  removeCutOff(): Promise<number>;
}

export function createResultRemoval(bus: Bus, clock: Pick<Clock, "now"> = systemClock): ResultRemoval {
  /** The client's own list is read by a consumer, which may be on a node that has died. */
  const infos = () => Array.fromAsync(standingMessages(bus, `$O.${store}.M.>`, {}), infoFrom);
  const purge = (filter: string) => bus.manager.streams.purge(stream, { filter });

  return {
    list: async () => (await infos()).flatMap((info) => resultFrom(info) ?? []),
    async remove({ reference, nuid }) {
      await purge(chunksOf(nuid));
      await purge(entryOf(reference));
    },
    async removeCutOff() {
      const { state } = await bus.manager.streams.info(stream, { subjects_filter: chunksOf(">") });
      const named = new Set((await infos()).map(({ nuid }) => chunksOf(nuid))); // read after the chunks, which come first
      let removed = 0;
      for (const subject of Object.keys(state.subjects ?? {})) {
        if (named.has(subject)) continue;
        const last = await bus.manager.streams.getMessage(stream, { last_by_subj: subject });
        if (last === null || clock.now() - last.time.getTime() < cutOffMs) continue;
        await purge(subject);
        removed += 1;
      }
      return removed;
    },
  };
}
