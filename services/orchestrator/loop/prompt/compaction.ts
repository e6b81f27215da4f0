/**
 * Keeps a conversation within its model's window: when the next request comes near it, the older part is replaced by a
 * summary that the model writes.
 *
 * compaction-1  The summary is an event of the log: every process that continues the run shows the same conversation.
 * compaction-2  The border is the commit of a turn, so that no call is parted from its result; the last turn is always kept.
 * compaction-3  What cannot get shorter is sent as it is: a border that does not move replaces nothing.
 */

import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import type { FoldedRun, Turn } from "../../log/state/fold.ts";
import { itemsFromTurns } from "../../log/state/view.ts";
import { ModelInterrupted } from "../../model/attempt/answer.ts";
import { callOptionsFromModelOptions } from "../../model/prompt/call-options.ts";
import type { LoopContext } from "../context.ts";
import { askModels, keyOfRequest } from "../requests/ask-models.ts";
import { attemptInSpan } from "../requests/attempt-in-span.ts";
import { type BrokenAttempts, createBrokenAttempts } from "../requests/broken-attempts.ts";
import { type AgentModel, pricedUsage } from "../requests/models.ts";
import { conversationFromState } from "./conversation.ts";
import { tokensOfItems, transcriptFromItems } from "./transcript.ts";

/** Of the window: when the conversation is shortened, what of it stays, what the summary is made from. */
const fullShare = 0.8;
const keptShare = 0.3;
const readShare = 0.6;
const maxSummaryCharacters = 128 * 1_024;

export interface Compaction {
  readonly beforeSequence: number;
  readonly older: readonly Item[];
}

/** Appends a summary when the next request would come near the window; gives whether it did. */
export async function compactIfFull(run: ClaimedRun, context: LoopContext, signal: AbortSignal): Promise<boolean> {
  const { contextWindow } = context.models.current.config;
  const compaction = decideCompaction(run.state, context.history, contextWindow);
  if (compaction === undefined) return false;
  const { beforeSequence, older } = compaction;
  const transcript = transcriptFromItems(older, contextWindow * readShare);
  const broken = createBrokenAttempts(run, context);
  const asked = await askModels(context, signal, {
    ask: (model) => summarize(model, { run, transcript, broken, signal }, context),
    settle: broken.settle,
  });
  if (asked === undefined) return true; // the run is over
  const { text, usage } = asked;
  const summary = text.slice(0, maxSummaryCharacters);
  await run.append(() => ({ case: "contextCompacted", value: { beforeSequence, summary, usage } }));
  return true;
}

export function decideCompaction(state: FoldedRun, history: readonly Item[], window: number): Compaction | undefined {
  if (window === 0) return undefined;
  const { opening, turns, continuesEarlier } = conversationFromState(state);
  const before = continuesEarlier ? [...history, ...opening] : opening;
  if (tokensOfNext(before, turns) < window * fullShare) return undefined;
  const firstKept = firstKeptTurn(turns, window * keptShare);
  const dropped = turns.slice(0, firstKept);
  const replacesHistory = continuesEarlier && history.length > 0;
  if (dropped.length === 0 && !replacesHistory) return undefined; // compaction-3
  const beforeSequence = turns[firstKept]?.sequence ?? state.eventCount;
  return { beforeSequence, older: [...before, ...itemsFromTurns(dropped)] };
}

/** The provider's count of the last request is better than an estimate, as far as it goes. */
function tokensOfNext(before: readonly Item[], turns: readonly Turn[]): number {
  const estimated = tokensOfItems(before) + turns.reduce((tokens, turn) => tokens + tokensOfTurn(turn), 0);
  const last = turns.at(-1);
  const counted = Number(last?.committed.usage?.inputTokens ?? 0n);
  return last === undefined ? estimated : Math.max(estimated, counted + tokensOfTurn(last));
}

/** compaction-2: the last turn and as many before it as have room. */
function firstKeptTurn(turns: readonly Turn[], room: number): number {
  let first = turns.length;
  for (let tokens = 0; first > 0; first -= 1) {
    tokens += tokensOfTurn(turns[first - 1]!);
    if (tokens > room && first < turns.length) return first;
  }
  return first;
}

const tokensByTurn = new WeakMap<Turn, number>();

function tokensOfTurn(turn: Turn): number {
  return getOrInsertComputed(tokensByTurn, turn, () => tokensOfItems(itemsFromTurns([turn])));
}

const instructions =
  "You summarise a conversation between a user and an assistant that uses tools, so that the assistant can go on with it " +
  "from your summary alone. Keep what was asked for, what was decided and why, facts, names, numbers, ids and paths as they " +
  "were written, what each tool found out that still matters, what went wrong, and what is left to do. Write nothing else.";

interface Summary {
  readonly run: ClaimedRun;
  readonly transcript: string;
  readonly broken: BrokenAttempts;
  readonly signal: AbortSignal;
}

async function summarize(model: AgentModel, { run, transcript, broken, signal }: Summary, context: LoopContext) {
  const { config } = model;
  const { state } = run;
  const place = { turn: state.turns.length + 1, attempt: 0 };
  const what = `${place.turn}-summary-${state.compaction?.beforeSequence ?? 0}`;
  const request = {
    ...callOptionsFromModelOptions(config.provider, config.options),
    prompt: [
      { role: "system" as const, content: instructions },
      { role: "user" as const, content: [{ type: "text" as const, text: transcript }] },
    ],
    headers: { "idempotency-key": keyOfRequest(state, context.models, what) },
  };
  const answer = await attemptInSpan(context, { model, state, what: "summary" }, request, {
    signal,
    onPiece: () => {},
    onBroken: (used) => broken.note(place, model, used),
  });
  const text = answer.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const usage = pricedUsage(config, answer.usage);
  if (text.trim() !== "") return { text, usage };
  broken.drop(place, model, answer);
  throw new ModelInterrupted("the model gave no summary");
}
