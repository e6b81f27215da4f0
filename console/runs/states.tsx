import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { waitingRuns } from "../inbox/waiting-calls.ts";
import { Badge, type Tone } from "../parts/notice.tsx";
import { clockOf, wordFrom } from "../parts/words.ts";

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

/** Since when a run waits for a person, in ms of the clock; undefined for one that does not. */
export function waitsSinceMs({ id, state }: StandingRun): number | undefined {
  return goingOn.includes(state) ? waitingRuns.value.get(id) : undefined;
}

interface StandingRun {
  readonly id: string;
  readonly state: RunState;
}

/** A run that waits for a person is one in progress to the suite, and none to who looks at it. */
export function RunBadge(run: StandingRun) {
  if (waitsSinceMs(run) !== undefined) return <Badge tone="wait">waits for a person</Badge>;
  const isForClient = run.state === RunState.REQUIRES_ACTION;
  return (
    <Badge tone={tones[run.state] ?? "quiet"}>
      {isForClient ? "waits for its client" : wordFrom(RunState, run.state)}
    </Badge>
  );
}

/** As `since 12:03:45`; empty for a run that waits for nobody, or is not known to. */
export function waitingText(run: StandingRun, parkedMs?: number): string {
  const since = waitsSinceMs(run) ?? (run.state === RunState.REQUIRES_ACTION ? parkedMs : undefined);
  return since === undefined ? "" : `since ${clockOf(since)}`;
}
