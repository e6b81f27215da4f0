import { createHash } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Role, type Run, RunMode, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { Answer } from "../calls/answer.ts";
import { addUsage, limitsOfRun } from "../calls/run-share.ts";
import type { AskingCall } from "../hosted/process/host.ts";
import type { Ask } from "../hosted/process/messages.ts";

interface Given {
  limits: NonNullable<ReturnType<typeof limitsOfRun>>;
  signal: AbortSignal;
}
type Generate = Extract<Ask, { kind: "generate" }>;

/** Who is executed again after a crash may ask for something else: that is another run. */
function digestOf({ prompt, instructions, agent }: Generate): string {
  return createHash("sha256")
    .update(JSON.stringify([prompt, instructions, agent]))
    .digest("hex")
    .slice(0, 32);
}

/** Models by way of runs: of one turn, without tools, in a session of their own that is closed afterwards. */
export class AgentModels {
  readonly #runs: Client<typeof RunService>;
  readonly #sessions: Client<typeof SessionService>;

  constructor(runs: Client<typeof RunService>, sessions: Client<typeof SessionService>) {
    this.#runs = runs;
    this.#sessions = sessions;
  }

  async generate(ask: Generate, id: string, scope: Scope, call: AskingCall): Promise<Answer> {
    const { signal, used } = call;
    const limits = limitsOfRun(call, used, call.deadlineMs);
    if (limits === undefined) return { kind: "error", error: "the run's budget is used up: no model is asked" };
    const { id: runId = "", sessionId = "" } = (await this.#start(ask, id, scope, { limits, signal })) ?? {};
    try {
      const ended = await this.#ended(runId, signal);
      addUsage(used, ended?.usage);
      if (ended?.state === RunState.COMPLETED)
        return { kind: "result", resultJson: JSON.stringify({ text: ended.outputText }) };
      const reason = ended?.error || ended?.endReason || "the run is gone";
      return { kind: "error", error: `the model gave no answer: ${reason}` };
    } finally {
      if (signal.aborted) await this.#runs.cancelRun({ runId, reason: "its caller has left" }).catch(() => {}); // it has ended
      await this.#sessions.closeSession({ sessionId }).catch(() => {}); // an open session without a run costs its entry only
    }
  }

  async #start(ask: Generate, id: string, scope: Scope, given: Given): Promise<Run | undefined> {
    const { limits, signal } = given;
    const message = { role: Role.USER, content: textContent(ask.prompt) };
    const { run } = await this.#runs.createRun(
      {
        agent: ask.agent || scope.agent,
        input: [{ item: { case: "message", value: message } }],
        options: {
          mode: RunMode.SINGLE_TURN,
          toolChoice: { choice: { case: "mode", value: ToolChoiceMode.NONE } },
          instructions: ask.instructions,
          limits,
        },
        idempotencyKey: `${id} ${digestOf(ask)}`,
      },
      { signal },
    );
    return run;
  }

  async #ended(runId: string, signal: AbortSignal): Promise<Run | undefined> {
    for await (const { update } of this.#runs.watchRun({ runId, fromSequence: 0n }, { signal })) {
      if (update.case === "event" && update.value.event.case === "ended") break;
    }
    return (await this.#runs.getRun({ runId }, { signal })).run;
  }
}
