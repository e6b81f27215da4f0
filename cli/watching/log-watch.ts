import { type LogUpdate, placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { printNote } from "../printing/print.ts";
import { resumedStream } from "./resumed-stream.ts";

interface Answer<E> {
  readonly update: LogUpdate<E> | { case: undefined; value?: undefined };
}

export interface LogWatch<E, A> {
  /** The first sequence that is wanted; 0 for all, absent for those from now on. */
  readonly from?: bigint | undefined;
  readonly open: (place: { fromSequence?: bigint }) => AsyncIterable<A>;
  readonly print: (event: E) => void;
  /** In place of words. */
  readonly printJson?: ((answer: A) => void) | false | undefined;
}

/** Prints a log as it is told, what is lacking too, and opens the watch again where it broke. */
export async function printLog<E extends { sequence: bigint }, A extends Answer<E>>(
  watch: LogWatch<E, A>,
): Promise<void> {
  const { from, open, print, printJson } = watch;
  const openAt = (place: bigint | undefined) => open(place === undefined ? {} : { fromSequence: place });
  for await (const answer of resumedStream(from, openAt, ({ update }, place) => placeAfterUpdate(update, place))) {
    const { update } = answer;
    if (update.case === "start" || update.case === undefined) continue;
    if (printJson) printJson(answer);
    else if (update.case === "event") print(update.value);
    else printNote(`events ${update.value.firstSequence} to ${update.value.lastSequence} are kept no longer`);
  }
}
