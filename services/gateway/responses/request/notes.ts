import type { RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import type { CreateBody } from "./body.ts";
import { namespacesFrom } from "./tools.ts";

/** What a response tells of its request, and the run's options have no field for: it stands in the run's metadata. */
const NOTES = "toolbus.response";

const TOLD = [
  "background",
  "store",
  "instructions",
  "truncation",
  "reasoning",
  "prompt_cache_key",
  "safety_identifier",
  "user",
] as const;

export interface Notes extends Partial<Pick<CreateBody, (typeof TOLD)[number]>> {
  /** The instructions in the input, which hold for the responses that go on from this one too. */
  readonly system?: string;
  /** The namespaces of the client's functions, by the functions' names. */
  readonly namespaces?: Readonly<Record<string, string>>;
}

export function metadataFrom(body: CreateBody, system: string): Record<string, string> {
  const told = TOLD.flatMap((field) =>
    body[field] === undefined || body[field] === null ? [] : [[field, body[field]]],
  );
  const namespaces = namespacesFrom(body);
  const more = { ...(system !== "" && { system }), ...(Object.keys(namespaces).length > 0 && { namespaces }) };
  const notes = { ...Object.fromEntries(told), ...more };
  return { ...body.metadata, ...(Object.keys(notes).length > 0 && { [NOTES]: JSON.stringify(notes) }) };
}

export function notesOf(options: Pick<RunOptions, "metadata"> | undefined): Notes {
  try {
    return fieldsOf(JSON.parse(options?.metadata[NOTES] ?? "{}"));
  } catch {
    return {}; // written by whoever created the run by RPC
  }
}

/** What the client itself noted. */
export function metadataOf(options: Pick<RunOptions, "metadata"> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(options?.metadata ?? {}).filter(([key]) => key !== NOTES));
}
