import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { FunctionCall, Item } from "#gen/toolbus/run/v1/run_pb.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { DeliveredInbox } from "./inbox/take-events.ts";
import type { RunLimits } from "./limits/limits.ts";
import type { ModelRow } from "./requests/models.ts";
import type { DeltaWriter } from "./streaming/deltas.ts";
import type { ToolMessageParts } from "./streaming/shown-calls.ts";
import type { ToolRouter } from "./tools/tool-router.ts";
import type { ToolTable } from "./tools/tool-table.ts";

/** What one run's loop works with while a process holds it. */
export interface LoopContext extends ToolMessageParts {
  readonly agent: Agent;
  readonly models: ModelRow;
  readonly limits: RunLimits;
  /** The conversation before this run. */
  readonly history: readonly Item[];
  /** What the agent gets besides its instructions, and what waited in its inbox. */
  readonly inbox: DeliveredInbox;
  readonly router: ToolRouter;
  /** The tools as they were listed when the run was claimed; absent to list them when they are first needed. */
  readonly listed?: Promise<ToolTable>;
  readonly clock: Clock;
  /** How much a model may say at once: more than what the log takes of a turn is not read. */
  readonly maxTurnBytes: number;
  /** After so long, and again, what a turn has said so far is stored. */
  readonly checkpointMs: number;
  readonly inSpan: InSpan;
  /** Lets another run have this one's place in the process, until it is disposed. */
  readonly lendSlot: () => Disposable;
  readonly publishDelta: (delta: RunDelta) => void;
  /** Sets the writer from which watchers that join in mid-turn get the text so far. */
  readonly setDeltas: (deltas: DeltaWriter) => void;
  /** Told of each call that the loop itself answers with an error; what it passes on, the router decides and audits. */
  readonly onRefused: (call: FunctionCall, why: string) => void;
  readonly onRetry: (error: unknown, afterMs: number) => void;
  readonly onFailover: (error: unknown, toModelId: string) => void;
  /** Aborts when the run is canceled or held by another: nothing that is under way counts any more. */
  readonly signal: AbortSignal;
  /** Aborts when this process is to stop: the run is put down at the next boundary, for another process to take up. */
  readonly handover: AbortSignal;
}
