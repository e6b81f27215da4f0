import type { RouterHistory } from "./history.ts";
import { submittedValueFrom } from "./reasons.ts";
import type { Rule } from "./rule.ts";

/** What is read from a stream may have been sent so long before, and what holds it lost. */
const UNREAD_MS = 4_000;

/** dispatcher-4: what one watcher has is handed to another only after the stream or a router was lost. */
export const checkDelivery: Rule = function* ({ handings }, history) {
  for (const [index, later] of handings.entries()) {
    const earlier = handings.slice(0, index).findLast(({ watcher }) => watcher !== later.watcher);
    if (earlier === undefined || isLost(earlier, later, history)) continue;
    yield `${later.watcher} was handed it ${later.atMs - earlier.atMs} ms after ${earlier.watcher}, which was there`;
  }
};

/** LOOP-14: at most once by anybody; what may be repeated, only after somebody was lost. */
export const checkExecution: Rule = function* ({ executions, handings, tool, record }, history) {
  const who = executions.map(({ watcher }) => watcher);
  if (tool.effect === "at_most_once" && who.length > 1) yield `it was executed by ${who.join(" and ")}`;
  if (tool.effect === "pure") {
    for (const [index, later] of executions.entries()) {
      const earlier = executions[index - 1];
      if (earlier === undefined) continue;
      const { stream = 0 } = handings.find(({ deliveryId }) => deliveryId === earlier.deliveryId) ?? {};
      if (!isLost({ ...earlier, stream }, later, history))
        yield `it was executed by ${who.join(" and ")}, none was lost`;
    }
  }
  if (record === undefined || record.isError || record.state !== "resolved") return;
  const { watcher } = submittedValueFrom(record.outputJson);
  if (!who.includes(watcher)) yield `its result is of ${watcher}, which had not taken it`;
};

interface Moment {
  readonly atMs: number;
}

/** Whether between the two the stream of the first ended, or a router was struck. */
function isLost(
  first: Moment & { watcher: string; stream: number },
  second: Moment,
  { endedStreams, strikes }: RouterHistory,
): boolean {
  const fromMs = first.atMs - UNREAD_MS;
  const hasEnded = endedStreams.some(
    ({ watcher, stream, atMs }) =>
      watcher === first.watcher && stream === first.stream && atMs >= fromMs && atMs <= second.atMs,
  );
  return hasEnded || strikes.some((strike) => strike.toMs >= fromMs && strike.fromMs <= second.atMs);
}
