import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { inParallel } from "#runtime/time/in-parallel.ts";
import type { OutputItem } from "../rendering/resource.ts";
import type { CreateBody, Typed } from "../request/body.ts";
import { type Asking, currentResponse } from "../runs.ts";

type Input = CreateBody["input"];

const MOST_RUNS = 4_096;
/** Each is read as a whole. */
const RUNS_AT_ONCE = 8;

/**
 * The input with the items of earlier responses in the place of references to them; a further reference to the same is left as it is.
 * Items of a response that was not to be stored are there for its own connection only (`own`).
 */
export async function withReferredItems(asking: Asking, input: Input, own?: ReadonlySet<string>): Promise<Input> {
  if (!Array.isArray(input)) return input;
  const found = await itemsReferredTo(asking, input.map(referredId), own);
  const seen = new Set<string>();
  return input.map((item, n) => {
    const id = referredId(item);
    if (id === undefined || seen.has(id)) return item;
    seen.add(id);
    return found.get(id) ?? refuseUnknownItem(id, `input[${n}]`);
  });
}

function referredId({ type, id }: Typed): string | undefined {
  return type === "item_reference" ? String(id) : undefined;
}

async function itemsReferredTo(asking: Asking, ids: readonly (string | undefined)[], own?: ReadonlySet<string>) {
  const wanted = new Set(ids);
  const runs = new Set<string>();
  const found = new Map<string, OutputItem>();
  let size = 0;
  for (const [n, id = ""] of ids.entries()) {
    const [, runId] = /^[a-z]+_([a-zA-Z0-9_-]{1,64})_(?:\d+_\d+|answer)$/.exec(id) ?? [];
    if (runId !== undefined) runs.add(runId);
    if (runs.size > MOST_RUNS)
      refuseField(`input[${n}]`, `refers to more than ${MOST_RUNS} responses: send previous_response_id, or the items`);
  }
  await inParallel([...runs], RUNS_AT_ONCE, async (runId) => {
    for (const item of await storedOutput(asking, runId, own)) {
      if (!wanted.has(item.id)) continue;
      size += JSON.stringify(item).length;
      if (size > asking.parts.maxBytes)
        refuse("resource_exhausted", "the items that the input refers to are too large", {
          reason: "MESSAGE_TOO_LARGE",
        });
      found.set(item.id, item);
    }
  });
  return found;
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
