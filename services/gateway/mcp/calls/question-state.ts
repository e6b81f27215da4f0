import type { KeyObject } from "node:crypto";
import type { CallOptions } from "@connectrpc/connect";
import {
  createRequestStateCodec,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
} from "@modelcontextprotocol/server";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { type Answers, type AskedBy, type Asking, answer, type Calls, elicitationOf } from "./questions.ts";

/** What a client of 2026-07-28 brings back with its answers, since no gateway remembers what it has asked. */
interface QuestionState {
  readonly callId: string;
  /** The questions that its answers are for, so that a request that comes twice answers no later one of the same name. */
  readonly asked: readonly string[];
}

/** How long it holds; whether there is still something to answer, the calls say. */
const TTL_SECONDS = 7 * 24 * 60 * 60;

export interface AskInResults {
  readonly calls: Calls;
  readonly options: CallOptions;
  readonly answers: Answers;
  readonly stateKey: KeyObject;
  /** For which call of which principal a state holds: under another it is refused, as is what was changed. */
  readonly boundTo: readonly string[];
}

/** Puts questions to clients of 2026-07-28: as the result of the call, which is asked for again with the answers. */
export function askInResults({ calls, options, answers, stateKey, boundTo }: AskInResults): Asking {
  const bind = () => JSON.stringify(boundTo);
  const states = createRequestStateCodec<QuestionState>({ key: stateKey.export(), ttlSeconds: TTL_SECONDS, bind });
  /** Names of answers that the client has brought without a state. Each is for one question. */
  const used = new Set<string>();

  async function ask(
    questions: readonly ToolCall[],
    { callId, context }: AskedBy,
  ): Promise<InputRequiredResult | undefined> {
    const inputRequests: InputRequests = {};
    const asked: string[] = [];
    const isFor = context.mcpReq.requestState<QuestionState>()?.asked;
    for (const question of questions) {
      const name = question.question?.name || "answer";
      const params = elicitationOf(question, answers);
      const isBrought = isFor?.includes(question.callId) ?? !used.has(name);
      const result = isBrought ? context.mcpReq.inputResponses?.[name] : undefined;
      used.add(name);
      if (result !== undefined && !(await answer(calls, { callId: question.callId, result }, options))) continue;
      if (!params) continue;
      inputRequests[name] = { method: "elicitation/create", params };
      asked.push(question.callId);
    }
    if (asked.length === 0) return undefined;
    return inputRequired({ inputRequests, requestState: await states.mint({ callId, asked }, context) });
  }

  return {
    answers,
    verifyState: states.verify,
    goesOn: ({ mcpReq }) => mcpReq.requestState<QuestionState>()?.callId,
    ask,
  };
}
