import { attemptText } from "#runtime/content/attempts.ts";
import type { Executed } from "#runtime/content/execution.ts";
import type { Replay, ReplayedCall, Step } from "#runtime/content/replay.ts";
import { textOfAmount } from "#runtime/money/money.ts";
import { colors, oneLine, shorten } from "../printing/print.ts";

/** A replay as lines for a reader: turn by turn, each with its place in the log, from which the run can be forked. */
export function linesOfReplay(replay: Replay, { isWhole = false } = {}): string[] {
  const cut = (text: string) => (isWhole ? oneLine(text) : shorten(text));
  const { runId, agent, sessionId, acceptedAt, traceId, parent, fork, given } = replay;
  return [
    `${colors.bold(runId)} of ${agent} in session ${sessionId}, accepted ${acceptedAt}${traceId === undefined ? "" : `, trace ${traceId}`}`,
    ...(parent === undefined || parent.runId === "" ? [] : [`called by run ${parent.runId}, call ${parent.callId}`]),
    ...(fork === undefined ? [] : [`forked from run ${fork.runId} at event ${fork.atSequence}`]),
    ...given.map((text) => `${place(0, 0)} ${colors.dim("given")} ${cut(text)}`),
    ...replay.steps.flatMap((step) => linesOfStep(step, cut)),
  ];
}

type Cut = (text: string) => string;

function linesOfStep(step: Step, cut: Cut): string[] {
  const head = place(step.sequence, step.atMs);
  if (step.kind === "note") return [`${head} ${colors.dim(cut(step.text))}`];
  if (step.kind === "end") {
    const error = step.error === "" ? "" : `: ${step.error}`;
    return [`${head} ${colors.bold(step.status)} (${step.reason})${cut(error)}`];
  }
  const { turn, attempt, model, usage, thoughts, text, calls } = step;
  const again = attempt > 1 ? `, ${attemptText(attempt)}` : "";
  const cost = usage.cost && { ...usage.cost, micros: BigInt(usage.cost.micros) };
  const tokens = `${usage.inputTokens} tokens in, ${usage.outputTokens} out${cost ? `, ${textOfAmount(cost)}` : ""}`;
  return [
    `${head} ${colors.bold(`turn ${turn}`)} ${colors.dim(`${model}${again}, ${tokens}`)}`,
    ...thoughts.map((thought) => `${indent}${colors.dim(cut(thought))}`),
    ...(text === "" ? [] : [`${indent}${cut(text)}`]),
    ...calls.flatMap((call) => linesOfCall(call, cut)),
  ];
}

function linesOfCall({ callId, name, arguments: given, result }: ReplayedCall, cut: Cut): string[] {
  const asked = `${indent}${colors.cyan(`→ ${name}`)} ${cut(given)} ${colors.dim(callId)}`;
  if (result === undefined) return [asked, `${indent}${colors.yellow("no result")}`];
  const mark = result.isError ? colors.red("✗") : colors.green("✓");
  const { output, sequence, afterMs, execution } = result;
  const facts = [`event ${sequence}`, `${afterMs} ms`, ...(execution === undefined ? [] : factsOfExecution(execution))];
  return [asked, `${indent}${mark} ${cut(output)} ${colors.dim(facts.join(", "))}`];
}

function factsOfExecution({ provider, kind, attempts }: Executed): string[] {
  const by = provider === "" || provider === kind ? kind : `${provider} (${kind})`;
  return [...(by === "" ? [] : [`by ${by}`]), ...(attempts > 1 ? [`${attempts} attempts`] : [])];
}

const indent = " ".repeat(15);

function place(sequence: number, atMs: number): string {
  return colors.dim(`${String(sequence).padStart(4)} ${`+${(atMs / 1_000).toFixed(2)}s`.padStart(9)}`);
}
