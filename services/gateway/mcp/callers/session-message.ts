import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { Role, type Run, RunEndReasonSchema, RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { resumed, WAITED_MS } from "#runtime/rpc/watching/resumed.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { textBlock } from "../agent/result-blocks.ts";
import type { OwnCall } from "../own/own-server.ts";
import type { McpSessions } from "../revisions/sessions.ts";
import { attachCaller } from "./attached-caller.ts";

const declaration = {
  caller_id: z
    .string()
    .optional()
    .describe("Stands before the names of your tools: the agent sees <caller_id>_<name>."),
  caller_tools: z
    .array(
      z.object({
        name: z.string(),
        description: z.string().optional(),
        inputSchema: z.record(z.string(), z.unknown()).optional(),
        timeout: z.number().int().min(1).optional().describe("How many milliseconds it may take."),
      }),
    )
    .optional()
    .describe("Tools of yours that the agent may call, in place of those of before; an empty list clears them."),
};

/** The arguments of `session_message`. Callers declare their tools in `context` or beside it (CTR-1). */
export const messageForm = z.object({
  message: z.string().min(1).describe("What to say to the agent."),
  agent: z.string().optional().describe("The agent, to open a session with it."),
  session_id: z.string().optional().describe("The session to go on with; with `agent`, the id of one to be opened."),
  context: z.looseObject(declaration).optional().describe("Where your tools may be declared as well."),
  ...declaration,
  idempotency_key: z
    .string()
    .optional()
    .describe(
      "Sent again with the same key in the same session, it is the same message, and its answer is waited for.",
    ),
});

export interface CallerClients {
  readonly callers: Client<typeof CallerService>;
  readonly runs: Client<typeof RunService>;
  readonly sessions: McpSessions;
}

/**
 * Says something to an agent, and waits for its answer. As long as that takes, the client is its session's caller. One that leaves
 * has canceled nothing: its requests end as those of any caller that is gone (CTR-7), and the run goes on.
 */
export async function sessionMessage(
  clients: CallerClients,
  call: OwnCall,
  given: z.infer<typeof messageForm>,
): Promise<CallToolResult> {
  const { callers, runs } = clients;
  const { options, request } = call;
  const sessionId = await sessionOf(clients, call, given);
  const isCaller = await declare(clients, call, { sessionId, given });
  using _attached = isCaller
    ? await attachCaller({ callers, sessionId, options, notify: (one) => request.notify(one) })
    : undefined;
  const content = textContent(given.message);
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content } } }];
  const { run } = await runs.createRun({ sessionId, input, idempotencyKey: given.idempotency_key ?? "" }, options);
  const runId = run?.id ?? refuse("internal", "the suite told no run", { reason: "INTERNAL" });
  await follow(clients, call, runId);
  const ended = (await runs.getRun({ runId }, options)).run;
  return resultFrom(ended ?? refuse("not_found", `run ${runId} is gone`, { reason: "RUN_NOT_FOUND" }));
}

type Given = z.infer<typeof messageForm>;

async function sessionOf({ sessions }: CallerClients, { caller }: OwnCall, given: Given): Promise<string> {
  const { agent, session_id: sessionId } = given;
  if (agent !== undefined) return (await sessions.open(agent, caller, sessionId)).id;
  if (sessionId !== undefined) return (await sessions.require(sessionId, caller)).id;
  return refuse("invalid_argument", "name the agent, or the session_id of a session", { reason: "INVALID_REQUEST" });
}

interface Declared {
  readonly sessionId: string;
  readonly given: Given;
}

/** Whether the session has tools of a caller. */
async function declare({ callers }: CallerClients, { options }: OwnCall, { sessionId, given }: Declared) {
  const { caller_id: callerId, caller_tools: tools } = given.context?.caller_tools ? given.context : given;
  if (tools === undefined) {
    const { declaration: standing } = await callers.getDeclaration({ sessionId }, options);
    return (standing?.tools.length ?? 0) > 0;
  }
  if (callerId === undefined)
    refuse("invalid_argument", "caller_tools need a caller_id", { reason: "INVALID_REQUEST" });
  const declared = tools.map(({ name, description = "", inputSchema, timeout }) => ({
    name,
    description,
    inputSchemaJson: inputSchema === undefined ? "" : JSON.stringify(inputSchema),
    ...(timeout !== undefined && { timeout: durationFromMs(timeout) }),
  }));
  await callers.declareTools({ sessionId, declaration: { callerId, tools: declared } }, options);
  return tools.length > 0;
}

/** To its end, or until it waits for what only clients of runs can give. Tells how far it is to who gave a token. */
async function follow({ runs }: CallerClients, { options, request }: OwnCall, runId: string): Promise<void> {
  const progressToken = request._meta?.progressToken;
  let fromSequence = 0n;
  const open = () => runs.watchRun({ runId, fromSequence }, options);
  const { signal } = options;
  const isParked = async () => (await runs.getRun({ runId }, options)).run?.state === RunState.REQUIRES_ACTION;
  for await (const { update } of resumed({ open, patienceMs: WAITED_MS, signal })) {
    fromSequence = placeAfterUpdate(update, fromSequence);
    if (update.case !== "event") continue;
    const params = { progressToken, progress: update.value.sequence + 1 };
    if (progressToken !== undefined) await request.notify({ method: "notifications/progress", params });
    // what is told may be long past: a run goes on when another client has answered
    if (update.value.event.case === "parked" && (await isParked())) return;
  }
}

function resultFrom(run: Run): CallToolResult {
  const { id, sessionId, state, endReason, outputText, error, requiredCalls } = run;
  const waiting = requiredCalls.map(({ name }) => name).join(", ");
  const isError = state === RunState.FAILED || state === RunState.CANCELED;
  const text = outputText || error || (waiting && `The run waits for outputs of ${waiting}.`);
  const structuredContent = {
    session_id: sessionId,
    run_id: id,
    state: enumWord(RunStateSchema, state),
    ...(endReason !== 0 && { end_reason: enumWord(RunEndReasonSchema, endReason) }),
    output_text: outputText,
    ...(error !== "" && { error }),
  };
  return { content: [textBlock(text)], structuredContent, ...(isError && { isError }) };
}
