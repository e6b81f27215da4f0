import { type JsonValue, toJson } from "@bufbuild/protobuf";
import type { RunDelta, RunEnded, RunEvent, RunTextReplaced } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, RunEndReason, RunEndReasonSchema, RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { whyDropped } from "#runtime/content/replay.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { codeOfValue, colors, nameOfValue, oneLine, progressText, shorten } from "./print.ts";

/** Where a run's course is written: standard output, or a test's list. */
export type Write = (text: string) => void;

export interface RunPrinter {
  show(update: WatchRunResponse): void;
}

/** A line of JSON for each update, in the contract's own form. */
export function createJsonRunPrinter(print: (value: JsonValue) => void): RunPrinter {
  return { show: (update) => print(toJson(WatchRunResponseSchema, update)) };
}

/**
 * Text as it is written, and a line for each call, its progress and its result.
 * @param options.saysCompleted Whether the end of a run that completed is told, as others are.
 */
export function createRunPrinter(write: Write, { saysCompleted = true } = {}): RunPrinter {
  /** Text of the turn that was shown as deltas, and need not be shown again when the turn is committed. */
  let shown = "";
  /** The attempt at the turn of which that is. */
  let shownAttempt = 0;
  const line = (text: string) => {
    write(`${shown === "" || shown.endsWith("\n") ? "" : "\n"}${text}\n`);
    shown = "";
  };
  const text = (piece: string) => {
    write(piece);
    shown += piece;
  };

  const startAgain = () => {
    if (shown !== "") line(colors.dim("(the model starts this answer again)"));
  };

  const showDelta = ({ delta, attempt }: RunDelta) => {
    if (delta.case === "text") {
      if (attempt !== shownAttempt) startAgain(); // its watch missed the end of the one before
      shownAttempt = attempt;
      text(delta.value);
    }
    if (delta.case === "progress") {
      const { callId, progress } = delta.value;
      line(colors.dim(`    ${callId} ${progress === undefined ? "" : progressText(progress)}`));
    }
    if (delta.case === "log") line(colors.dim(`    ${delta.value.callId} ${oneLine(delta.value.log?.message ?? "")}`));
  };

  /** What continues the text that stands there is added to it. */
  const showReplaced = (replaced: RunTextReplaced) => {
    const continues = replaced.text !== "" && shown !== "" && replaced.text.startsWith(shown);
    if (!continues) startAgain();
    shownAttempt = replaced.attempt;
    text(replaced.text.slice(shown.length));
  };

  const showItems = (items: Item[]) => {
    for (const { item } of items) {
      const said = item.case === "message" ? textOfContent(item.value.content) : "";
      if (!shown.endsWith(said)) text(said);
      if (item.case === "functionCall") {
        line(`${colors.cyan(`→ ${item.value.name}`)} ${colors.dim(shorten(item.value.argumentsJson))}`);
      }
    }
  };

  const showEvent = ({ event }: RunEvent) => {
    switch (event.case) {
      case "turnCommitted":
        return showItems(event.value.items);
      case "callFinished": {
        const { callId, result } = event.value;
        const mark = result?.isError ? colors.red("✗") : colors.green("✓");
        return line(`${mark} ${shorten(result?.outputJson ?? "null")} ${colors.dim(callId)}`);
      }
      case "answerDropped":
        return line(colors.dim(`(this answer ${whyDropped(event.value)} and is dropped)`));
      case "parked":
        return line(colors.yellow(`waits for outputs of ${event.value.calls.map((call) => call.name).join(", ")}`));
      case "ended":
        if (event.value.endReason === RunEndReason.STOPPED_AT_TOOL) line(event.value.outputText);
        if (saysCompleted || event.value.state !== RunState.COMPLETED) return line(endingText(event.value));
        return shown === "" || shown.endsWith("\n") ? undefined : text("\n");
    }
  };

  return {
    show({ update }) {
      if (update.case === "delta") showDelta(update.value);
      if (update.case === "replaced") showReplaced(update.value);
      if (update.case === "event") showEvent(update.value);
      if (update.case === "gap")
        line(colors.yellow(`events ${update.value.firstSequence} to ${update.value.lastSequence} are lost`));
    },
  };
}

export function endingText({ state, endReason, error }: Pick<RunEnded, "state" | "endReason" | "error">): string {
  const name = nameOfValue(RunStateSchema, state);
  const colour = state === RunState.COMPLETED ? colors.green : colors.red;
  return `${colour(name)}${endReason === RunEndReason.UNSPECIFIED ? "" : ` (${codeOfValue(RunEndReasonSchema, endReason)})`}${error === "" ? "" : `: ${error}`}`;
}
