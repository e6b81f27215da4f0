/**
 * A call's id is the model's own, made fit for the router and unique in the run: models repeat themselves.
 * An id that comes twice in one turn marks the second call, which is refused wherever the run goes on.
 */

import type { Turn } from "./fold.ts";

const duplicateMark = "duplicate_";
const maxLength = 64;
const roomOfNumber = 8;

/** The ids of one turn's calls, in order. */
export function callIdsOfTurn(
  turn: number,
  modelIds: readonly string[],
  taken: Pick<ReadonlySet<string>, "has">,
): string[] {
  const given = new Set<string>();
  const isGone = (id: string) => given.has(id) || taken.has(id);
  const inTurn = new Set<string>();
  return modelIds.map((modelId, index) => {
    const isDuplicate = modelId !== "" && inTurn.has(modelId);
    inTurn.add(modelId);
    const fitting = fittingId(modelId, turn, index);
    const id = unique(isDuplicate ? `${duplicateMark}${fitting}`.slice(0, maxLength) : fitting, isGone);
    given.add(id);
    return id;
  });
}

/** The ids of all calls of a run. */
export function takenCallIds(turns: readonly Turn[]): ReadonlySet<string> {
  return new Set(turns.flatMap(({ calls }) => calls.map(({ callId }) => callId)));
}

export function isDuplicateCallId(callId: string): boolean {
  return callId.startsWith(duplicateMark);
}

function fittingId(modelId: string, turn: number, index: number): string {
  const fitting = modelId.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxLength);
  if (fitting === "") return `call_${turn}_${index + 1}`;
  return isDuplicateCallId(fitting) ? `_${fitting}`.slice(0, maxLength) : fitting;
}

function unique(id: string, isTaken: (callId: string) => boolean): string {
  let candidate = id;
  for (let number = 2; isTaken(candidate); number += 1)
    candidate = `${id.slice(0, maxLength - roomOfNumber)}_${number}`;
  return candidate;
}

/** The id under which the router, and so spaces, know a call of a run. */
export function routerCallId(runId: string, callId: string): string {
  return `${runId}_${callId}`;
}
