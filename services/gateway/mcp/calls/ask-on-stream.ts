import { RELATED_TASK_META_KEY, type Transport } from "@modelcontextprotocol/server";
import { type Asking, elicitationOf } from "./questions.ts";

/**
 * Puts questions to a client of 2025-06-18 or 2025-11-25: each as a request on the stream of the call. The client answers with a
 * message of its own, to whichever gateway.
 */
export function askOnStream(
  transport: () => Pick<Transport, "send">,
  options: Pick<Asking, "answers" | "isResumed">,
): Asking {
  const asked = new Set<string>();
  return {
    ...options,
    async ask(questions, { callId, context, isTask }) {
      const meta = isTask && { _meta: { [RELATED_TASK_META_KEY]: { taskId: callId } } };
      for (const question of questions) {
        const { callId: id } = question;
        const params = asked.has(id) ? undefined : elicitationOf(question, options.answers);
        if (params === undefined) continue;
        asked.add(id);
        const request = { jsonrpc: "2.0", id, method: "elicitation/create", params: { ...params, ...meta } } as const;
        await transport().send(request, { relatedRequestId: context.mcpReq.id });
      }
      return undefined;
    },
  };
}
