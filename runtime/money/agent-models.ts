import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ModelSettingsSchema } from "#gen/toolbus/run/v1/model_settings_pb.ts";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type Role,
  type Run,
  RunEndReason,
  RunMode,
  type RunOptionsSchema,
  RunState,
  ToolChoiceMode,
} from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { addUsage, limitsOfRun, type RunShare, type Used } from "#runtime/money/run-share.ts";

/** What a model is asked, as one turn without tools. */
export interface Question {
  readonly messages: readonly { readonly role: Role; readonly text: string }[];
  readonly instructions: string;
  /** Whose model; empty means the agent that calls. */
  readonly agent: string;
  /** What is asked of the model in place of what its agent says. */
  readonly modelSettings?: MessageInitShape<typeof ModelSettingsSchema>;
}

/** The call on whose behalf a model is asked. */
export interface AskingCall extends RunShare {
  /** When its time is over. */
  readonly deadlineMs: number;
  /** Grows with each thing that is done on its behalf. */
  readonly used: Used;
  readonly signal: AbortSignal;
}

/** A text is cut off where the question says how many tokens it may have. */
export type ModelAnswer =
  | { kind: "text"; text: string; model: string; isCutOff: boolean }
  | { kind: "error"; error: string };

/** The client of runs, as far as it is needed here. */
interface Runs {
  createRun(request: NewRun, options: Ends): Promise<{ run?: Run | undefined }>;
  getRun(request: { runId: string }, options: Ends): Promise<{ run?: Run | undefined }>;
  cancelRun(request: { runId: string; reason: string }): Promise<unknown>;
  watchRun(
    request: { runId: string; fromSequence: bigint },
    options: Ends,
  ): AsyncIterable<{ update: { case: "event"; value: RunEvent } | { case?: string | undefined; value?: unknown } }>;
}

interface Ends {
  signal: AbortSignal;
}

interface NewRun {
  agent: string;
  input: { item: { case: "message"; value: { role: Role; content: ReturnType<typeof textContent> } } }[];
  options: MessageInitShape<typeof RunOptionsSchema>;
  idempotencyKey: string;
}

interface Sessions {
  closeSession(request: { sessionId: string }): Promise<unknown>;
}

interface Given {
  limits: NonNullable<ReturnType<typeof limitsOfRun>>;
  signal: AbortSignal;
}

/** Who is executed again after a crash may ask for something else: that is another run. */
function digestOf(question: Question): string {
  return createHash("sha256").update(JSON.stringify(question)).digest("hex").slice(0, 32);
}

/** Models by way of runs: of one turn, without tools, in a session of their own that is closed afterwards. */
export class AgentModels {
  readonly #runs: Runs;
  readonly #sessions: Sessions;

  constructor(runs: Runs, sessions: Sessions) {
    this.#runs = runs;
    this.#sessions = sessions;
  }

  async generate(ask: Question, id: string, scope: { readonly agent: string }, call: AskingCall): Promise<ModelAnswer> {
    const { signal, used } = call;
    const limits = limitsOfRun(call, used, call.deadlineMs);
    if (limits === undefined) return { kind: "error", error: "the run's budget is used up: no model is asked" };
    const { id: runId = "", sessionId = "" } = (await this.#start(ask, id, scope, { limits, signal })) ?? {};
    try {
      const { ended, model } = await this.#ended(runId, signal);
      addUsage(used, ended?.usage);
      const isCutOff =
        ask.modelSettings?.maxOutputTokens !== undefined && ended?.endReason === RunEndReason.MAX_OUTPUT_TOKENS;
      if (ended && (isCutOff || ended.state === RunState.COMPLETED))
        return { kind: "text", text: ended.outputText, model, isCutOff };
      const reason = ended?.error || ended?.endReason || "the run is gone";
      return { kind: "error", error: `the model gave no answer: ${reason}` };
    } finally {
      if (signal.aborted) await this.#runs.cancelRun({ runId, reason: "its caller has left" }).catch(() => {}); // it has ended
      await this.#sessions.closeSession({ sessionId }).catch(() => {}); // an open session without a run costs its entry only
    }
  }

  async #start(ask: Question, id: string, scope: { readonly agent: string }, given: Given): Promise<Run | undefined> {
    const { limits, signal } = given;
    const input = ask.messages.map(({ role, text }) => ({
      item: { case: "message" as const, value: { role, content: textContent(text) } },
    }));
    const { run } = await this.#runs.createRun(
      {
        agent: ask.agent || scope.agent,
        input,
        options: {
          mode: RunMode.SINGLE_TURN,
          toolChoice: { choice: { case: "mode", value: ToolChoiceMode.NONE } },
          instructions: ask.instructions,
          limits,
          ...(ask.modelSettings && { modelSettings: ask.modelSettings }),
        },
        idempotencyKey: `${id} ${digestOf(ask)}`,
      },
      { signal },
    );
    return run;
  }

  async #ended(runId: string, signal: AbortSignal) {
    let model = "";
    for await (const { update } of this.#runs.watchRun({ runId, fromSequence: 0n }, { signal })) {
      if (update.case !== "event") continue;
      const { event } = update.value as RunEvent;
      if (event.case === "turnCommitted") ({ model } = event.value);
      if (event.case === "ended") break;
    }
    return { ended: (await this.#runs.getRun({ runId }, { signal })).run, model };
  }
}
