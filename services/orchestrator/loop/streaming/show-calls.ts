/**
 * Shows the calls of visible tools while an attempt of the model writes them.
 *
 * The stream waits for nothing: one request is under way at a time, each takes what came meanwhile, and between two rounds
 * lies a pause. A failure is reported once, and the attempt goes on unseen. Long arguments stop growing before they
 * cost the space too much; the router shows them whole.
 */

import { RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { type ClaimedRun, Superseded } from "../../log/claim.ts";
import { callIdsOfTurn, routerCallId } from "../../log/state/call-ids.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { Piece } from "../../model/attempt/answer.ts";
import type { ToolTable } from "../tools/tool-table.ts";
import type { ToolMessageParts } from "./shown-calls.ts";

const pauseMs = 250;
const mostCharacters = 16_384;

/** Disposing says that the attempt is over: nothing of it is shown any more. */
export interface CallDisplay extends AsyncDisposable {
  write(piece: Piece): void;
}

export interface AttemptShown {
  readonly table: Pick<ToolTable, "visibleReferenceOf">;
  readonly turn: number;
  readonly attempt: number;
  /** The ids that a call of this attempt cannot have. */
  readonly taken: (state: FoldedRun) => Pick<ReadonlySet<string>, "has">;
  /** Told when the run turns out to be in other hands, or is to be canceled. */
  readonly onSuperseded: (error: Superseded) => void;
}

interface WrittenCall {
  readonly tool: string;
  /** The model's ids of the calls up to this one. */
  readonly modelIds: readonly string[];
  callId: string;
  text: string;
  shownText: string | undefined;
}

export function openCallDisplay(run: ClaimedRun, parts: ToolMessageParts, shown: AttemptShown): CallDisplay {
  const { toolMessages, clock, onNotShown } = parts;
  const { table, turn, attempt, taken, onSuperseded } = shown;
  const { runId, accepted } = run.state;
  const { sessionId, agent, principal } = accepted;
  const over = new AbortController();
  const { signal } = over;
  const by = { signal, principal };
  const written = createWrittenCalls(table);
  let isOff = accepted.options?.mode === RunMode.SINGLE_TURN; // its calls are never made
  let underWay: Promise<void> | undefined;
  let space: string | undefined;

  function write(piece: Piece): void {
    if (piece.kind !== "arguments" || isOff || !written.take(piece)) return;
    underWay ??= show()
      .catch(giveUp)
      .finally(() => {
        underWay = undefined;
      });
  }

  async function show(): Promise<void> {
    space ??= (await toolMessages.getActiveSpace({ sessionId, agent }, by)).spaceId;
    if (space === "") isOff = true;
    for (let due = written.grown(); due.length > 0 && !isOff; due = written.grown()) {
      for (const call of due) await showCall(call, space);
      await clock.delay(pauseMs, signal);
    }
  }

  async function showCall(call: WrittenCall, spaceId: string): Promise<void> {
    if (call.callId === "") await announce(call, spaceId);
    signal.throwIfAborted();
    const { tool, text } = call;
    const callId = routerCallId(runId, call.callId);
    const message = {
      callId,
      tool,
      runId,
      argumentsJson: text,
      state: ToolMessageState.RUNNING,
      argumentsIncomplete: true,
    };
    await toolMessages.recordToolMessage({ spaceId, sessionId, agent, message }, by);
    call.shownText = text;
  }

  /** shown-1, shown-4. */
  async function announce(call: WrittenCall, spaceId: string): Promise<void> {
    await run.append((state) => {
      if (signal.aborted) return undefined;
      call.callId = callIdsOfTurn(turn, call.modelIds, taken(state)).at(-1) ?? "";
      return { case: "callShown", value: { turn, attempt, callId: call.callId, tool: call.tool, spaceId } };
    });
  }

  function giveUp(error: unknown): void {
    isOff = true;
    if (signal.aborted) return;
    if (error instanceof Superseded) onSuperseded(error);
    else onNotShown(error);
  }

  return {
    write,
    async [Symbol.asyncDispose]() {
      isOff = true;
      if (underWay === undefined) return;
      over.abort(new Error("the attempt is over"));
      await underWay;
    },
  };
}

type ArgumentsPiece = Extract<Piece, { kind: "arguments" }>;

/** The calls of an attempt as far as the model has written them. */
function createWrittenCalls(table: AttemptShown["table"]) {
  const callsByModelId = new Map<string, WrittenCall | undefined>(); // undefined: it is not to be shown

  function callFrom({ callId, name }: ArgumentsPiece): WrittenCall | undefined {
    const tool = table.visibleReferenceOf(name);
    const modelIds = [...callsByModelId.keys(), callId];
    return tool === undefined ? undefined : { tool, modelIds, callId: "", text: "", shownText: undefined };
  }

  return {
    /** Gives whether there is more to show. */
    take(piece: ArgumentsPiece): boolean {
      if (!callsByModelId.has(piece.callId)) callsByModelId.set(piece.callId, callFrom(piece));
      const call = callsByModelId.get(piece.callId);
      if (call === undefined || call.text.length >= mostCharacters) return false;
      call.text = (call.text + piece.text).slice(0, mostCharacters);
      return true;
    },
    grown: () => [...callsByModelId.values()].filter((call) => call !== undefined).filter(hasGrown),
  };
}

function hasGrown({ text, shownText }: WrittenCall): boolean {
  return text !== shownText;
}
