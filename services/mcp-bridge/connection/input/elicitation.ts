import { create } from "@bufbuild/protobuf";
import type { ClientCapabilities, ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import {
  type Elicitation,
  ElicitationSchema,
  InputKind,
  type InputRequest,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";

/** Asks who waits for a call for something, while its server holds it open; resolves with the answer as JSON text. */
export type Ask = (kind: InputKind, request: InputRequest["request"], signal: AbortSignal) => Promise<string>;

/** A request of a server to ask a person, on behalf of the call that it is about; without one there is nobody to ask. */
export async function answerElicitation(
  params: ElicitRequest["params"],
  ask: Ask | undefined,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const { kind, elicitation } = elicitationFrom(params);
  if (ask === undefined) return { action: "cancel" };
  return JSON.parse(await ask(kind, { case: "elicitation", value: elicitation }, signal)) as ElicitResult;
}

/** Refuses a URL that nobody should open. */
export function elicitationFrom(params: ElicitRequest["params"]): { kind: InputKind; elicitation: Elicitation } {
  const { message } = params;
  if (params.mode !== "url") {
    const requestedSchemaJson = JSON.stringify(params.requestedSchema);
    return { kind: InputKind.FORM, elicitation: create(ElicitationSchema, { message, requestedSchemaJson }) };
  }
  if (!["http:", "https:"].includes(URL.parse(params.url)?.protocol ?? ""))
    refuse("invalid_argument", "a person is shown http: and https: URLs only", { reason: "INVALID_REQUEST" });
  return { kind: InputKind.URL, elicitation: create(ElicitationSchema, { message, url: params.url }) };
}

/** What a server of 2026-07-28 is told that it may ask for on behalf of one call. */
export function capabilitiesFor(accepted: readonly InputKind[]): ClientCapabilities {
  const modes = {
    ...(accepted.includes(InputKind.FORM) && { form: {} }),
    ...(accepted.includes(InputKind.URL) && { url: {} }),
  };
  return Object.keys(modes).length > 0 ? { elicitation: modes } : {};
}
