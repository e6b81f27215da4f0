import { refuse } from "#runtime/failure/failure.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { answerJson } from "../plain/exchange.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";

/** The agents that the caller may use, as models. */
export async function listModels(exchange: ResponsesExchange): Promise<void> {
  answerJson(exchange.response, 200, { object: "list", data: (await namesOf(exchange)).map(modelFrom) });
}

export async function getModel(exchange: ResponsesExchange, model: string): Promise<void> {
  const names = await namesOf(exchange);
  if (!names.includes(model)) {
    const message = `there is no agent ${model.slice(0, 64)} that you may use; there are ${names.join(", ") || "none"}`;
    refuse("not_found", message, { reason: "AGENT_NOT_FOUND", fieldViolations: [{ field: "model", message }] });
  }
  answerJson(exchange.response, 200, modelFrom(model));
}

async function namesOf({ parts: { agents }, options }: ResponsesExchange): Promise<string[]> {
  const pages = await allPages((pageToken) =>
    agents.listAgents({ pageToken, pageSize: 1_000, onlyGranted: true }, options),
  );
  return pages.flatMap((page) => page.agents.map(({ agent }) => agent?.name ?? ""));
}

/** Nothing says when an agent was made. */
function modelFrom(name: string) {
  return { id: name, object: "model", created: 0, owned_by: "toolbus" };
}
