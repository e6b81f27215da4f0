import { createInterface } from "node:readline";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { createAnswering, LinesEnded } from "../answering/answering.ts";
import type { Connection } from "../connection.ts";
import { exitCodes } from "../faults/fault.ts";
import { invocation } from "../faults/invocation.ts";
import { printNote } from "../printing/print.ts";
import { type ShowOptions, showToEnd } from "./show-to-end.ts";

/** Shows a run until it ends, and asks whoever sits there, or what is piped in, for the outputs that it waits for (LOOP-5). */
export async function showAnswered(
  connection: Connection,
  runId: string,
  { signal, ...options }: Pick<ShowOptions, "json" | "signal" | "onUpdate">,
): Promise<RunState> {
  const runs = connection.client(RunService);
  await using lines = openLines();
  const answering = createAnswering({
    lines,
    ask: (call, fault) => printNote(questionFrom(call, fault)),
    submit: (callId, submission) => runs.submitOutputs({ runId, outputs: [{ callId, ...submission }] }),
  });
  try {
    using leaving = openEnding(answering.left, signal);
    return await showToEnd(connection, runId, {
      ...options,
      staysWhileParked: true,
      signal: leaving.signal,
      onUpdate(update) {
        answering.see(update);
        options.onUpdate?.(update);
      },
    });
  } catch (error) {
    if (!answering.left.aborted) throw error;
    if (!(answering.left.reason instanceof LinesEnded)) throw answering.left.reason;
    for (const { callId } of answering.waiting)
      printNote(`give it with: ${invocation} runs answer ${runId} ${callId} OUTPUT`);
    process.exitCode = exitCodes.failure;
    return RunState.REQUIRES_ACTION;
  }
}

function questionFrom({ name, argumentsJson, callId }: FunctionCall, fault: string | undefined): string {
  const question = `${name} ${argumentsJson} (${callId}): its output as JSON, or ! and why it failed`;
  return fault === undefined ? question : `${fault}\n${question}`;
}

/** Of standard input, which nobody touches before the first one is asked for. */
function openLines(): AsyncIterator<string> & AsyncDisposable {
  let opened: ReturnType<typeof open> | undefined;
  const open = () => {
    const input = createInterface({ input: process.stdin });
    return { input, iterator: input[Symbol.asyncIterator]() };
  };
  return {
    next: () => {
      opened ??= open();
      return opened.iterator.next();
    },
    async [Symbol.asyncDispose]() {
      opened?.input.close();
      process.stdin.destroy();
    },
  };
}
