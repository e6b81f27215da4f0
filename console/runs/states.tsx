import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { Badge, type Tone } from "../parts/notice.tsx";
import { wordFrom } from "../parts/words.ts";

const tones: Readonly<Record<number, Tone>> = {
  [RunState.QUEUED]: "quiet",
  [RunState.IN_PROGRESS]: "busy",
  [RunState.REQUIRES_ACTION]: "wait",
  [RunState.COMPLETED]: "good",
  [RunState.INCOMPLETE]: "wait",
  [RunState.FAILED]: "bad",
  [RunState.CANCELED]: "quiet",
};

/** States of a run that goes on. */
export const goingOn: readonly RunState[] = [RunState.QUEUED, RunState.IN_PROGRESS, RunState.REQUIRES_ACTION];

export function RunBadge({ state }: { state: RunState }) {
  return <Badge tone={tones[state] ?? "quiet"}>{wordFrom(RunState, state)}</Badge>;
}
