/**
 * Takes one turn of the model: as many attempts as it needs, one append when it is whole.
 *
 * turn-1  An attempt that was given up leaves nothing in the log but checkpoints, and what it used. The next one has a higher
 *     number, which resets watchers.
 * turn-2  Attempts under a later claim are numbered after all of an earlier one, whose number is not known any more.
 * turn-3  What is asked for again after a reset, a stall or a crash is asked for under the same key, so that a provider that keeps
 *     keys answers once. Another model, and an answer that was whole and of no use, make another key.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { ATTEMPTS_OF_CLAIM } from "#runtime/content/attempts.ts";
import { textContent } from "#runtime/content/text.ts";
import { filled } from "#runtime/schema/json-object.ts";
import type { Ending } from "#runtime/time/ending.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import { callIdsOfTurn, takenCallIds } from "../../log/state/call-ids.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { Answer, AnswerPart, Piece, Used } from "../../model/attempt/answer.ts";
import { callOptionsFromModelOptions, callOptionsFromSettings } from "../../model/prompt/call-options.ts";
import type { LoopContext } from "../context.ts";
import { RunFailed } from "../errors/run-failed.ts";
import { decideStop } from "../limits/stop-condition.ts";
import { callIdsBefore, promptOfRun } from "../prompt/prompt-of-run.ts";
import { askModels, keyOfRequest } from "../requests/ask-models.ts";
import { attemptInSpan } from "../requests/attempt-in-span.ts";
import { createBrokenAttempts } from "../requests/broken-attempts.ts";
import { type AgentModel, pricedUsage } from "../requests/models.ts";
import { openCheckpoints } from "../streaming/checkpoints.ts";
import { createDeltaWriter, type DeltaWriter } from "../streaming/deltas.ts";
import { endShownCallsOfTurn } from "../streaming/end-shown-calls.ts";
import { type CallDisplay, openCallDisplay } from "../streaming/show-calls.ts";
import type { ToolTable } from "../tools/tool-table.ts";
import { flawOfAnswer, mayStayEmpty } from "./answer-flaws.ts";
import { toolChoiceOfTurn } from "./tool-choice.ts";

/** turn-2. */
export function firstAttemptOfClaim({ claimsInTurn }: Pick<FoldedRun, "claimsInTurn">): number {
  return (claimsInTurn - 1) * ATTEMPTS_OF_CLAIM + 1;
}

export interface TurnTaken {
  readonly table: ToolTable;
  readonly answer: Answer;
  readonly usage: ReturnType<typeof pricedUsage>;
  readonly turn: number;
  readonly attempt: number;
  readonly items: Item[];
  readonly deltas: DeltaWriter;
}

/** Undefined when what came to nothing has used up what the run may spend. */
export async function takeTurn(
  run: ClaimedRun,
  context: LoopContext,
  table: ToolTable,
  ending: Ending,
): Promise<TurnTaken | undefined> {
  const { state } = run;
  const { signal } = ending;
  const turn = state.turns.length + 1;
  let attempt = firstAttemptOfClaim(state) - 1;
  let hasFailed = false;
  const broken = createBrokenAttempts(run, context);
  if (state.lost !== undefined) broken.noteLost(state.lost, context.models.current, promptOfRun(state, context, table));
  if (state.lost !== undefined && !(await broken.settle())) return undefined;
  for (;;) {
    const question = async (model: AgentModel) => {
      attempt += 1; // turn-1
      const place = { turn, attempt };
      const onBroken = (used: Used) => broken.note(place, model, used);
      const publish = (delta: RunDelta) => run.afterStored(() => context.publishDelta(delta));
      const deltas = createDeltaWriter(place, publish);
      context.setDeltas(deltas);
      await endShownCallsOfTurn(run, context, signal);
      const onSuperseded = ending.end;
      using _ = openCheckpoints(run, deltas, { everyMs: context.checkpointMs, onSuperseded });
      try {
        const shown = { table, turn, attempt, taken: takenIds(context, attempt), onSuperseded };
        await using drafts = openCallDisplay(run, context, shown);
        return {
          ...(await ask(context, { model, state: run.state, table, turn, deltas, drafts, signal, onBroken })),
          model,
          deltas,
        };
      } catch (error) {
        await endShownCallsOfTurn(run, context, signal);
        throw error;
      } finally {
        deltas.flush();
      }
    };
    const asked = await askModels(context, signal, { ask: question, settle: broken.settle });
    if (asked === undefined) return undefined;
    const { answer, model, deltas, flaw } = asked;
    const usage = pricedUsage(model.config, answer.usage);
    if (flaw === undefined || (hasFailed && mayStayEmpty(flaw, answer, turn)))
      return {
        table,
        answer,
        usage,
        turn,
        attempt,
        deltas,
        items: itemsFromAnswer(answer, turn, takenIds(context, attempt)(run.state)),
      };
    await run.append(() => ({ case: "answerDropped", value: { turn, attempt, usage, model: answer.modelId } }));
    if (hasFailed) throw new RunFailed(flaw.endReason, flaw.message);
    if (decideStop(run.state, context.limits, context.clock.now()) !== undefined) return undefined;
    hasFailed = true;
  }
}

interface Question extends Pick<TurnTaken, "table" | "turn" | "deltas"> {
  model: AgentModel;
  state: FoldedRun;
  drafts: CallDisplay;
  signal: AbortSignal;
  onBroken: (used: Used) => void;
}

async function ask(context: LoopContext, question: Question) {
  const { model, state, table, turn, deltas, drafts, signal, onBroken } = question;
  const options = state.accepted.options;
  const toolChoice = toolChoiceOfTurn(options, turn, table);
  const tools = table.modelTools.length > 0 ? { tools: table.modelTools, toolChoice } : {};
  const { provider, options: ofModel } = model.config;
  const strictJsonSchema = options?.modelSettings?.jsonOutput?.strict;
  const own = callOptionsFromModelOptions(provider, { ...ofModel, ...filled({ strictJsonSchema }) });
  const request = {
    ...own,
    ...callOptionsFromSettings(options?.modelSettings, own, state.spent.outputTokens),
    ...tools,
    prompt: promptOfRun(state, context, table),
    headers: { "idempotency-key": keyOfRequest(state, context.models, `${turn}`) }, // turn-3
  };
  const onPiece = (piece: Piece) => {
    deltas.write(piece);
    drafts.write(piece);
  };
  const asked = { model, state, what: "turn" } as const;
  const answer = await attemptInSpan(context, asked, request, { signal, onBroken, onPiece });
  return { answer, flaw: flawOfAnswer(answer, toolChoice, table) };
}

type TakenIds = Pick<ReadonlySet<string>, "has">;

/** The ids that no call of an attempt at the next turn can have: those of calls, and of drafts of other attempts (shown-4). */
function takenIds({ history }: LoopContext, attempt: number): (state: FoldedRun) => TakenIds {
  return (state) => {
    const inRun = takenCallIds(state.turns);
    const before = callIdsBefore(state, history);
    const turn = state.turns.length + 1;
    const others = state.shown.filter((draft) => draft.turn !== turn || draft.attempt !== attempt);
    const drafted = new Set(others.map(({ callId }) => callId));
    return { has: (id) => inRun.has(id) || before.has(id) || drafted.has(id) };
  };
}

function itemsFromAnswer(answer: Answer, turn: number, taken: TakenIds): Item[] {
  const modelIds = answer.parts.flatMap((part) => (part.kind === "call" ? [part.id] : []));
  const callIds = callIdsOfTurn(turn, modelIds, taken).values();
  return answer.parts.map((part) => create(ItemSchema, { item: itemFromPart(part, () => callIds.next().value ?? "") }));
}

function itemFromPart(
  part: AnswerPart,
  nextCallId: () => string,
): NonNullable<MessageInitShape<typeof ItemSchema>["item"]> {
  const { metadataJson: providerMetadataJson } = part;
  switch (part.kind) {
    case "text":
      return {
        case: "message",
        value: { role: Role.ASSISTANT, content: textContent(part.text), providerMetadataJson },
      };
    case "reasoning":
      return { case: "reasoning", value: { text: part.text, providerMetadataJson } };
    case "call": {
      const { name, argumentsJson } = part;
      return { case: "functionCall", value: { callId: nextCallId(), name, argumentsJson, providerMetadataJson } };
    }
  }
}
