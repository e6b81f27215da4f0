import { create } from "@bufbuild/protobuf";
import type { RunContext } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { AgentModels } from "#runtime/money/agent-models.ts";
import { nothingUsed, toldUse } from "#runtime/money/run-share.ts";
import { LOCAL_PRINCIPAL, withPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { decodeRunContext, encodeRunContext } from "#runtime/rpc/run-context.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { clientFor } from "../../clients.ts";
import type { Sample } from "../calls/execute/input/question.ts";
import { answerFrom, questionFrom } from "../calls/execute/input/sampling.ts";
import type { Sampling } from "../calls/execute/provider.ts";
import { tokenFrom } from "./watchers/subject-token.ts";

const LONGEST_MS = 120_000;

type Asked = Parameters<Sample>[0];

/** Texts for MCP servers, by the model of the agent that called, on behalf of its principal and inside what its run leaves to the call. */
export function createSampling(bus: Bus, telemetry: Pick<Telemetry, "clientTracing">): Sampling {
  const interceptors = clientInterceptors({ telemetry });
  const sessions = clientFor(bus, SessionService, { interceptors });
  const models = new AgentModels(clientFor(bus, RunService, { interceptors }), sessions);
  return ({ callId, scope, context, runDeadline = Number.POSITIVE_INFINITY }) => {
    const used = nothingUsed();
    /** Read when a text is asked for: most calls ask for none. */
    let share: RunContext | undefined;
    /** One after the other, so that each is held to what those before have left of the run's budget. */
    let last: Promise<unknown> = Promise.resolve();
    async function answer({ id, paramsJson }: Asked, signal: AbortSignal): Promise<string> {
      if (scope.agent === "") return JSON.stringify({ error: "the call comes from no agent" });
      share ??= decodeRunContext(encodeRunContext(context));
      const call = { ...share, used, signal, deadlineMs: Math.min(runDeadline, Date.now() + LONGEST_MS) };
      try {
        const answered = await withPrincipal(scope.principal || LOCAL_PRINCIPAL, () =>
          models.generate(questionFrom(paramsJson), `sample_${tokenFrom(callId, id)}`, scope, call),
        );
        return answered.kind === "text" ? answerFrom(answered) : JSON.stringify({ error: answered.error });
      } catch (error) {
        signal.throwIfAborted();
        return JSON.stringify({ error: messageFromUnknown(error) });
      }
    }
    return {
      sample(asked, signal) {
        const answered = last.then(() => answer(asked, signal));
        last = answered.catch(() => {}); // whoever asked is told
        return answered;
      },
      used: () => (share ? { usage: create(UsageSchema, toldUse(share, used)) } : {}),
    };
  };
}
