import { clone, create } from "@bufbuild/protobuf";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunForkSchema, type RunOptions, RunOptionsSchema, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ForkRunRequest } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Carry } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { readState } from "../../log/journal.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { notFound } from "../existing-run.ts";
import { acceptRun, findAccepted } from "./acceptance.ts";
import type { CreationOptions } from "./creation.ts";
import { boundedInput, inputWithKnownCalls, itemsFromInput } from "./input.ts";
import { refuseOther, sessionOfKey } from "./repetition/repetition.ts";

/**
 * Starts a run that goes on from a point of another one, with the same agent and options, in a session of its own: the other
 * one and what follows it stay as they are. Its conversation up to the point is read where it stands, and copied nowhere.
 */
export async function forkRun(
  options: CreationOptions,
  { runId, atSequence, idempotencyKey, ...request }: ForkRunRequest,
  by: { signal: AbortSignal; principal: string; caller: Caller },
): Promise<FoldedRun> {
  const given = await itemsFromInput(request.input, { sender: by.principal, signal: by.signal });
  const state = (await readState(options.log, runId)) ?? notFound(runId);
  const { accepted, eventCount } = state;
  requireOwner(accepted, by.caller, `run ${runId}`);
  const fork = create(RunForkSchema, { runId, atSequence });
  const runOptions = optionsAt(state, atSequence);
  const asked = { input: given, fork, previousRunId: "", ...(runOptions && { options: runOptions }) };
  const sessionId = idempotencyKey === "" ? "" : sessionOfKey("fork", by.principal, runId, idempotencyKey);
  const repeated = sessionId === "" ? undefined : await findAccepted(options, sessionId, idempotencyKey);
  if (repeated !== undefined) {
    refuseOther(repeated, asked);
    return repeated;
  }
  using place = await options.runQuota?.requireRoom(by.principal);
  if (atSequence >= eventCount) {
    refuse("out_of_range", `run ${runId} has no event ${atSequence}: its last is ${eventCount - 1}`, {
      reason: "RUN_EVENT_NOT_FOUND",
    });
  }
  const standing = { agent: accepted.agent, switchCount: 0, carry: Carry.UNSPECIFIED }; // of a session of its own
  const previous = { ...standing, previousRunId: "", fork, before: undefined };
  const input = await inputWithKnownCalls(options, previous, given, () => options.agents.getAgent(accepted.agent, by));
  const session = await options.sessions.createSession(accepted.agent, {
    ...by,
    ...(sessionId !== "" && { sessionId }),
  });
  const { id, principal } = session;
  const bounded = await boundedInput(input, options.boundResult, id);
  const forked = { ...asked, ...standing, input: bounded, sessionId: id, principal, idempotencyKey };
  const started = await acceptRun(options, create(RunAcceptedSchema, forked), { isFirst: sessionId === "", place });
  refuseOther(started, asked); // another creation may have been first
  return started;
}

/** LOOP-2: `required` and a forced tool are done with once a turn that met them is behind the fork. */
function optionsAt({ accepted: { options }, turns }: FoldedRun, atSequence: number): RunOptions | undefined {
  const choice = options?.toolChoice?.choice;
  const isOnce = choice?.case === "forcedTool" || (choice?.case === "mode" && choice.value === ToolChoiceMode.REQUIRED);
  if (options === undefined || !isOnce || !turns.some(({ sequence }) => sequence <= atSequence)) return options;
  const rest = clone(RunOptionsSchema, options);
  delete rest.toolChoice;
  return rest;
}
