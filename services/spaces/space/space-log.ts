import { create } from "@bufbuild/protobuf";
import {
  type SpaceEvent,
  SpaceEventSchema,
  type SpaceMessage,
  ToolMessageState,
} from "#gen/toolbus/space/v1/space_pb.ts";
import type { LogUpdate } from "#runtime/rpc/watching/log-update.ts";
import { fadingMessage, messageOfEvent, type SpaceState } from "./space-state.ts";

/** The logs of all spaces; the fold of a log is the state of its space. */
export interface SpaceLog {
  /** With everything that was acknowledged before; not to be changed. */
  read(spaceId: string): Promise<SpaceState>;
  /** Appends behind that event, and gives the event with its sequence; undefined when somebody else wrote there. */
  append(spaceId: string, after: bigint, event: SpaceEvent): Promise<SpaceEvent | undefined>;
  /** What happens from a sequence on, or from now on, until the signal aborts. */
  follow(spaceId: string, fromSequence: bigint | undefined, signal: AbortSignal): AsyncIterable<LogUpdate<SpaceEvent>>;
}

export type LogDecision<R> = { append: SpaceEvent } | { keep: R };

/**
 * Decides by the state, and appends if that is still the state; otherwise decides again. `decide` must have no effects.
 */
export async function appendDecided<R>(
  log: SpaceLog,
  spaceId: string,
  decide: (state: SpaceState) => LogDecision<R>,
): Promise<{ appended: SpaceEvent } | { kept: R }> {
  for (;;) {
    const state = await log.read(spaceId);
    const decision = decide(state);
    if ("keep" in decision) return { kept: decision.keep };
    const appended = await log.append(spaceId, state.sequence, decision.append);
    if (appended === undefined) continue;
    const fading = fadingMessage(state);
    const isTold = fading?.id === messageOfEvent(decision.append)?.id;
    if (fading && !isTold) await log.append(spaceId, appended.sequence, againEvent(fading)).catch(() => undefined); // the next one does it
    return { appended };
  }
}

/** Says once more how a call stands. */
function againEvent(value: SpaceMessage): SpaceEvent {
  const isWaiting = value.content.case === "tool" && value.content.value.state === ToolMessageState.REQUIRES_ACTION;
  return create(SpaceEventSchema, { event: { case: isWaiting ? "toolRequiresAction" : "toolStreaming", value } });
}
