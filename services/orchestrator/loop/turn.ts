/**
 * Takes one turn of the model: as many attempts as it needs, one append when it is whole.
 *
 * T1  An attempt that was given up leaves nothing in the log. The next one has a higher number, which resets watchers.
 * T2  Attempts under a later claim are numbered after all of an earlier one, whose number nobody knows any more.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import { type Answer, type SpokenPart, takeAttempt } from "../model/attempt.ts";
import { callOptionsFromModelOptions } from "../model/call-options.ts";
import { decideRetry } from "../model/retry.ts";
import type { RunState } from "../run/fold.ts";
import { callIdsOfTurn } from "./call-ids.ts";
import type { LoopContext } from "./context.ts";
import { createDeltaWriter, type DeltaWriter } from "./deltas.ts";
import { promptOfRun } from "./prompt-of-run.ts";
import { RunFailed } from "./run-failed.ts";
import { meetsToolChoice, toolChoiceOfTurn } from "./tool-choice.ts";
import type { ToolTable } from "./tool-table.ts";

/** The largest number of attempts that one claim may need: `model_retries` is at most 100. */
const attemptsOfClaim = 128;

/** T2. */
export function firstAttemptOfClaim({ claimsInTurn }: RunState): number {
  return (claimsInTurn - 1) * attemptsOfClaim + 1;
}

export interface TurnTaken {
  readonly table: ToolTable;
  readonly answer: Answer;
  readonly turn: number;
  readonly attempt: number;
  readonly items: Item[];
  readonly deltas: DeltaWriter;
}

export async function takeTurn(
  context: LoopContext,
  state: RunState,
  table: ToolTable,
  signal: AbortSignal,
): Promise<TurnTaken> {
  const { clock, limits } = context;
  const turn = state.turns.length + 1;
  const backoff = createBackoff({ initialMs: 250, maxMs: 10_000, jitter: 0.5 });
  let attempt = firstAttemptOfClaim(state);
  let hasDisobeyed = false;
  for (let failures = 0; ; attempt += 1) {
    const deltas = createDeltaWriter({ turn, attempt }, context.publishDelta);
    context.setDeltas(deltas);
    try {
      const { answer, obeys } = await ask(context, { state, table, turn, attempt, deltas, signal });
      if (obeys) return { table, answer, turn, attempt, deltas, items: itemsFromAnswer(answer, turn, state) };
      if (hasDisobeyed) throw new RunFailed("tool_choice_unmet", "the model did not obey tool_choice, twice"); // LOOP-2
      hasDisobeyed = true;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RunFailed) throw error;
      const retry = decideRetry(error, backoff, clock.now());
      if (retry.kind === "give_up" || failures >= limits.modelRetries) {
        throw new RunFailed("model_error", messageFromUnknown(error), error);
      }
      failures += 1;
      context.onRetry(error, retry.afterMs);
      await clock.delay(retry.afterMs, signal);
    } finally {
      deltas.flush();
    }
  }
}

interface Question {
  state: RunState;
  table: ToolTable;
  turn: number;
  attempt: number;
  deltas: DeltaWriter;
  signal: AbortSignal;
}

async function ask(context: LoopContext, question: Question) {
  const { agent, model, limits } = context;
  const { state, table, turn, attempt, deltas, signal } = question;
  const options = state.accepted.options;
  const toolChoice = toolChoiceOfTurn(options, turn, table);
  const tools = table.modelTools.length > 0 ? { tools: table.modelTools, toolChoice } : {};
  const request = {
    ...callOptionsFromModelOptions(agent.model?.provider ?? "", agent.model?.options),
    ...tools,
    prompt: promptOfRun(state, context),
    headers: { "idempotency-key": `${state.runId}-${turn}-${attempt}` },
  };
  const answer = await takeAttempt(model, request, {
    stallMs: limits.modelStallMs,
    signal,
    onPiece: (piece) => deltas.write(piece),
  });
  return { answer, obeys: meetsToolChoice(answer, toolChoice, table) };
}

function itemsFromAnswer(answer: Answer, turn: number, state: RunState): Item[] {
  const modelIds = answer.parts.flatMap((part) => (part.kind === "call" ? [part.id] : []));
  const taken = new Set(state.turns.flatMap(({ calls }) => calls.map(({ callId }) => callId)));
  const callIds = callIdsOfTurn(turn, modelIds, taken).values();
  return answer.parts.map((part) => create(ItemSchema, { item: itemFromPart(part, () => callIds.next().value ?? "") }));
}

function itemFromPart(
  part: SpokenPart,
  nextCallId: () => string,
): NonNullable<MessageInitShape<typeof ItemSchema>["item"]> {
  switch (part.kind) {
    case "text":
      return { case: "message", value: { role: Role.ASSISTANT, text: part.text } };
    case "reasoning":
      return { case: "reasoning", value: { text: part.text, providerMetadataJson: part.metadataJson } };
    case "call": {
      const { name, argumentsJson } = part;
      return { case: "functionCall", value: { callId: nextCallId(), name, argumentsJson } };
    }
  }
}
