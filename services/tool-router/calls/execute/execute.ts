import { create } from "@bufbuild/protobuf";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolQuestionsSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { TOOL_ERROR, toolSpan } from "#runtime/telemetry/conventions.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { executionBy } from "../../tools/tool-set/executor.ts";
import { type Answer, successJson } from "../answers/answer.ts";
import type { CallControl } from "../in-flight.ts";
import type { HttpExecution } from "./http/http-execution.ts";
import type { Outside } from "./outside.ts";
import type { ProviderCall } from "./provider.ts";

/** A call that was resolved, permitted, validated and recorded. */
export type PreparedCall = Omit<ProviderCall, "executor">;

export interface Execution {
  execute(call: PreparedCall, control: CallControl): Promise<Answer>;
}

/** What an execution says of itself to whoever traces it; those who join it have spans of their own requests. */
export function tracedExecution(execution: Execution, inSpan: InSpan): Execution {
  return {
    execute(call, control) {
      const { entry, callId, scope } = call;
      const isOfClient = entry.standing === "caller";
      const describe = () => toolSpan(scope, { name: entry.modelName, callId, isOfClient });
      return inSpan(describe, async (span) => {
        const answer = await execution.execute(call, control);
        if (answer.isError) span.fail(TOOL_ERROR);
        return answer;
      });
    },
  };
}

export interface Executors {
  http: HttpExecution;
  outside: Outside;
  providers: { execute(call: ProviderCall, control: CallControl): Promise<Answer> };
}

export function createExecution({ http, outside, providers }: Executors): Execution {
  return {
    /** What an answer does not say of its execution is what its tool says: another router may have executed it. */
    async execute(call, control) {
      const { executor, tool } = call.entry;
      const execution = executionBy(executor, tool, executor.kind === "gateway" ? 1 : 0);
      return { execution, ...(await answerOf(call, control)) };
    },
  };

  async function answerOf(call: PreparedCall, control: CallControl): Promise<Answer> {
    const { entry, deadline, begun } = call;
    const { executor, tool } = entry;
    switch (executor.kind) {
      case "internal":
        return successJson(`{"success":true,"args":${call.argumentsJson || "{}"}}`); // TOOL-2: nobody runs it
      case "gateway":
        return http.execute(
          entry,
          { json: call.argumentsJson || "{}", idempotencyKey: idempotencyKeyOf(call) },
          deadline,
          control.signal,
        );
      case "outside":
        if (begun.kind !== "open") throw new TypeError("a call that is answered from outside is always recorded");
        if (call.answers.forms && begun.record.executionType === ExecutionType.SPACE)
          control.emit({ case: "questions", value: create(ToolQuestionsSchema, { questions: [begun.record] }) });
        return outside.execute(begun, tool.isAsync, deadline, control.signal);
      case "provider":
        return providers.execute({ ...call, executor, argumentsJson: call.argumentsJson || "{}" }, control);
    }
  }
}

/** A run's calls have ids that nobody else's have. Clients choose theirs, and may choose the same. */
function idempotencyKeyOf({ callId, scope }: PreparedCall): string {
  return scope.runId === "" ? `${scope.sessionId}/${callId}` : callId;
}
