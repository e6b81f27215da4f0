import { BoundedMap } from "../../collections/maps/bounded-map.ts";

/** A record of a store, as far as it has to be named. */
export interface RecordPlace {
  readonly subject: string;
  readonly sequence: number;
}

/** One that this release cannot read; a message that is not stored has the sequence 0. */
export interface Unreadable extends RecordPlace {
  readonly reason: string;
}

/**
 * Reads a record. What a newer release wrote, or somebody who is none of the suite, is told in the log, once, and passed over
 * by whoever gets undefined here: no record is a reason to stop following, or to fail for ever. `parse` gives undefined for a
 * record that lacks what makes it one.
 */
export function readRecord<T>(
  bus: { readonly tellUnreadable: (record: Unreadable) => void },
  place: RecordPlace,
  parse: () => T | undefined,
): T | undefined {
  try {
    const record = parse();
    if (record === undefined) bus.tellUnreadable({ ...placeOf(place), reason: "it lacks what makes it a record" });
    return record;
  } catch (error) {
    bus.tellUnreadable({ ...placeOf(place), reason: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}

function placeOf({ subject, sequence }: RecordPlace): RecordPlace {
  return { subject, sequence };
}

const mostRemembered = 1_000;

/** Each record is told once while it is remembered, however often it is read. */
export function tellingOnce(tell: (record: Unreadable) => void): (record: Unreadable) => void {
  const told = new BoundedMap<string, true>(mostRemembered);
  return (record) => {
    const name = `${record.subject} ${record.sequence}`;
    if (told.has(name)) return;
    told.set(name, true);
    tell(record);
  };
}
