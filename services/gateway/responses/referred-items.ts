import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { OutputItem } from "./rendering/resource.ts";
import type { CreateBody } from "./request/body.ts";
import { type Asking, currentResponse } from "./runs.ts";

type Input = CreateBody["input"];

/**
 * The input with the items of earlier responses in the place of references to them, each once. Items of a response that was not to be
 * stored are there for its own connection only (`own`).
 */
export async function withReferredItems(asking: Asking, input: Input, own?: ReadonlySet<string>): Promise<Input> {
  if (!Array.isArray(input)) return input;
  let last: { runId: string; output: readonly OutputItem[] } = { runId: "", output: [] };
  const seen = new Set<string>();
  const items: typeof input = [];
  let size = 0;
  for (const [n, item] of input.entries()) {
    const id = item.type === "item_reference" ? String(item.id) : undefined;
    if (id === undefined) items.push(item);
    if (id === undefined || seen.has(id)) continue;
    seen.add(id);
    const [, runId = ""] = /^[a-z]+_([a-zA-Z0-9_-]{1,64})_(?:\d+_\d+|answer)$/.exec(id) ?? [];
    if (runId !== last.runId) last = { runId, output: runId === "" ? [] : await storedOutput(asking, runId, own) };
    const found = last.output.find((candidate) => candidate.id === id) ?? refuseUnknownItem(id, `input[${n}]`);
    size += JSON.stringify(found).length;
    if (size > asking.parts.maxBytes)
      refuse("resource_exhausted", "the items that the input refers to are too large", { reason: "MESSAGE_TOO_LARGE" });
    items.push(found);
  }
  return items;
}

async function storedOutput(asking: Asking, runId: string, own?: ReadonlySet<string>): Promise<readonly OutputItem[]> {
  const response = await currentResponse(asking, runId).catch((error: unknown) => {
    const { reason } = failureFromConnectError(error);
    return reason === "RUN_NOT_FOUND" || reason === "PRINCIPAL_NOT_OWNER" ? undefined : Promise.reject(error);
  });
  return response && (response.store !== false || own?.has(response.id)) ? response.output : [];
}

function refuseUnknownItem(id: string, field: string): never {
  const message = `there is no item ${id.slice(0, 128)} to refer to: send the item itself, or previous_response_id`;
  refuse("not_found", `${field}: ${message}`, { reason: "RUN_NOT_FOUND", fieldViolations: [{ field, message }] });
}
