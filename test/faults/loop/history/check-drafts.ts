import type { TextCheckpoint } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import type { RunHistory, Violation } from "./history.ts";

const rule = "drafts";

/** What the record has of a turn that is not committed. */
export function textLeftOpen({ events }: Pick<RunHistory, "events">): string {
  let text = "";
  for (const { event } of events) {
    if (event.case === "claimed" || event.case === "turnCommitted") text = "";
    if (event.case === "textCheckpoint") text = (event.value.firstDelta === 0 ? "" : text) + event.value.text;
  }
  return text;
}

/** H11: the checkpoints of an attempt join, belong to the turn that is due, and are a prefix of it when it is committed. */
export function* checkDrafts({ events }: RunHistory): Generator<Violation> {
  let committed = 0;
  let draft: Pick<TextCheckpoint, "attempt" | "deltaCount" | "text"> | undefined;
  for (const { event, sequence } of events) {
    if (event.case === "claimed") draft = undefined;
    if (event.case === "textCheckpoint") {
      const { turn, attempt, deltaCount, text, firstDelta } = event.value;
      if (turn !== committed + 1)
        yield { rule, what: `${sequence}: text of turn ${turn} comes after turn ${committed}` };
      if (draft !== undefined && attempt < draft.attempt)
        yield { rule, what: `${sequence}: attempt ${attempt} is over` };
      const before = draft?.attempt === attempt ? draft : { deltaCount: 0, text: "" };
      if (firstDelta !== before.deltaCount)
        yield { rule, what: `${sequence}: delta ${firstDelta} follows ${before.deltaCount}` };
      draft = { attempt, deltaCount, text: before.text + text };
    }
    if (event.case === "turnCommitted") {
      const { turn, attempt, items } = event.value;
      const text = items.map(({ item }) => (item.case === "message" ? textOfContent(item.value.content) : "")).join("");
      const isPrefix = draft?.attempt !== attempt || text.startsWith(draft.text);
      if (!isPrefix) yield { rule, what: `${sequence}: turn ${turn} was "${draft?.text}" and is "${text}"` };
      [committed, draft] = [turn, undefined];
    }
  }
}
