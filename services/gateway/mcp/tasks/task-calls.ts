import { create as message } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { type CallToolResult as Answer, CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { WAITED_MS } from "#runtime/rpc/watching/resumed.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type AgentServerOptions, type AskedCall, calledBy } from "../agent/agent-server.ts";
import { resultFrom } from "../agent/call-result.ts";
import { recordedArguments } from "../agent/stored-results.ts";
import { isRecorded, readTools, scopeOfSession } from "../agent/tool-list.ts";
import { type CalledTool, type CallInSession, follow } from "../calls/call.ts";
import type { Asking } from "../calls/questions.ts";
import type { HeldCalls } from "./held-calls.ts";
import { createRecordedTasks } from "./recorded-tasks.ts";
import { LONGEST_MS } from "./task.ts";

export interface TasksOptions extends Omit<AgentServerOptions, "asking"> {
  readonly principal: string;
  readonly held: HeldCalls;
  readonly asking: Asking;
  /** Calls a tool in any session of the principal. */
  readonly callIn: (sessionId: string) => CallInSession;
  /** Aborts when the client has left, or this process waits no longer. */
  readonly left: AbortSignal;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
}

/** Asks again as long as a call that lost its router looks for another one. */
export function readPatiently<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retryWhile(isUnavailable, read, { initialMs: 50, maxMs: 1_000, patienceMs: WAITED_MS, signal });
}

/** How a call began: `ended` settles with its answer. One without a record was refused, and has no task. */
export interface BegunCall {
  readonly call: ToolCall | undefined;
  readonly ended: Promise<Answer>;
}

/** The calls behind tasks, which go on without those who asked for them. */
export function createTaskCalls(options: TasksOptions) {
  const { asking, held, left } = options;
  const tasks = createRecordedTasks({ ...options, answers: asking.answers });

  function wait(callTool: CallInSession, call: CalledTool) {
    const { signal } = new AbortController();
    const parts = { ...options, callTool, answers: asking.answers };
    return held.hold(call.callId, (notify) => follow(parts, call, { signal, notify, ask: async () => undefined }));
  }

  /** TASK-3. Resolves when the waiting has ended, however. */
  async function keepGoing(recorded: ToolCall): Promise<void> {
    const { callId, sessionId, state, tool: name } = recorded;
    if (state !== ToolCallState.STARTED && state !== ToolCallState.WAITING) return;
    const argumentsJson = await recordedArguments(recorded, options.results).catch(() => undefined);
    if (argumentsJson === undefined) return; // whoever goes on with it would hand a digest to its tool
    await wait(options.callIn(sessionId), { callId, name, argumentsJson }).catch(() => {}); // it is in flight under a name that its record does not have, or refused by now
  }

  /** Resolves when the call has its record (TASK-1), or was refused. */
  async function begin(asked: AskedCall, callId: string, ttlMs?: number): Promise<BegunCall> {
    const task = ttlMs === undefined ? {} : { ttl: durationFromMs(Math.min(Math.floor(ttlMs), LONGEST_MS)) };
    const waited = wait(options.callTool, { ...calledBy(options, asked), callId, task });
    const ended = waited.then((outcome) =>
      outcome.kind === "answer" ? outcome.answer : refuse("internal", "a task asks nobody", { reason: "INTERNAL" }),
    );
    ended.catch(() => {}); // the record tells
    for (let waitMs = 5; ; waitMs = Math.min(waitMs * 2, 250)) {
      const isEnded = await comesWithin(waitMs, unlessAborted(ended, left));
      // what has begun goes on: whoever was told a fault would make it again
      const reading = readPatiently(() => tasks.findAny(callId), left);
      const call = await reading.catch(async () => void (await ended)); // how it ended says what is known of it
      if (call || isEnded) return { call, ended };
    }
  }

  function answerOf(answer: Answer, { callId, outputSchemaJson }: Pick<ToolCall, "callId" | "outputSchemaJson">) {
    return resultFrom(answer, { ...options, callId, hasSchema: async () => outputSchemaJson !== "" });
  }

  async function resultOf(call: ToolCall): Promise<CallToolResult> {
    const { $typeName, ...recorded } =
      call.result ?? refuse("internal", "the call ended without a result", { reason: "INTERNAL" });
    return answerOf(message(CallToolResultSchema, recorded), call);
  }

  return {
    tasks,
    begin,
    keepGoing,
    answerOf,
    resultOf,
    isTaskTool: (asked: AskedCall) => isTaskTool(options, calledBy(options, asked).name),
  };
}

/** TASK-2; undefined where there is no such tool, which the router refuses in words. */
async function isTaskTool({ tools, sessionId, options }: TasksOptions, name: string): Promise<boolean | undefined> {
  const list = await readTools(tools, scopeOfSession(await sessionId()), options);
  const isNamed = ({ modelName, reference, aliases }: (typeof list.tools)[number]) =>
    modelName === name || reference === name || aliases.includes(name);
  const found = list.tools.find(isNamed);
  return found && isRecorded(found.tool);
}
