/**
 * TOOL-10: a call of a visible tool is shown in the active space while the model still writes its arguments, as the draft of the message
 * that the router continues when the call is made.
 *
 * shown-1  The log names a draft before the draft is shown: the log knows every message that may exist.
 * shown-2  Before an event that leaves a draft behind, the draft's message gets its end. Such events are the commit of a turn (drafts that
 *     are no calls of it), the result of a call (its draft) and the end of the run (all drafts). If a process dies in between, the
 *     event is missing, and the next claim does both. Spaces that are unavailable for longer than `patienceMs` do not stop the
 *     run; then the message that still stands is logged.
 * shown-3  Once the router has shown the call, or the message has its end, writing the draft changes nothing. So a late write, even of a
 *     process that was frozen, does no harm.
 * shown-4  The id of a draft is given to no call of another attempt.
 */

import type { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import type { CallShown } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import type { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ClientOnBehalf } from "#runtime/rpc/bus/client-on-behalf.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { routerCallId } from "../../log/state/call-ids.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { isUnavailable, retryWhileUnavailable } from "../errors/retry-while-unavailable.ts";

/** Where calls are shown: the spaces service. */
export type ToolMessages = Pick<ClientOnBehalf<typeof SpaceService>, "getActiveSpace"> &
  Pick<ClientOnBehalf<typeof ToolMessageService>, "recordToolMessage">;

export interface ToolMessageParts {
  readonly toolMessages: ToolMessages;
  readonly clock: Clock;
  /** Told of a draft that could not be shown, or of one whose end could not. */
  readonly onNotShown: (error: unknown, draft?: CallShown) => void;
}

/** Drafts of the turn that is not committed. */
export function shownCallsOfTurn({ shown, turns }: FoldedRun): readonly CallShown[] {
  return shown.filter(({ turn }) => turn > turns.length);
}

/** Drafts that the end of the run would leave behind. */
export function openShownCalls(state: FoldedRun): readonly CallShown[] {
  const results = state.turns.at(-1)?.resultsByCallId;
  return state.shown.filter(({ turn, callId }) => turn >= state.turns.length && !results?.has(callId));
}

export interface Ending {
  readonly drafts: readonly CallShown[];
  readonly result: ToolResult;
  readonly signal: AbortSignal;
  readonly patienceMs: number;
}

/** shown-2. Gives whether all drafts have their end, or can never have it; throws when the signal aborts. */
export async function endShownCalls(
  parts: ToolMessageParts,
  state: FoldedRun,
  { drafts, result, ...patience }: Ending,
): Promise<boolean> {
  const { runId } = state;
  const { sessionId, agent, principal } = state.accepted;
  const recorded = await Promise.all(
    drafts.map(async (draft) => {
      const { spaceId, tool } = draft;
      const callId = routerCallId(runId, draft.callId);
      const message = { callId, tool, runId, state: ToolMessageState.ERROR, result, argumentsIncomplete: true };
      const request = { spaceId, sessionId, agent, message };
      const record = () => parts.toolMessages.recordToolMessage(request, { signal: patience.signal, principal });
      try {
        await retryWhileUnavailable({ clock: parts.clock, ...patience }, record);
        return true;
      } catch (error) {
        patience.signal.throwIfAborted();
        parts.onNotShown(error, draft);
        return !isUnavailable(error);
      }
    }),
  );
  return !recorded.includes(false);
}
