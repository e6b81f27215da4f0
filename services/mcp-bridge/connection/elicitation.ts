import { create } from "@bufbuild/protobuf";
import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { type Elicitation, ElicitationSchema, InputKind } from "#gen/toolbus/provider/v1/input_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { CallChannel } from "./calls.ts";

/** A request of a server to ask a person, on behalf of the call that it is about; without one there is nobody to ask. */
export async function answerElicitation(
  params: ElicitRequest["params"],
  channel: CallChannel | undefined,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const { kind, elicitation } = elicitationFrom(params);
  if (channel === undefined) return { action: "cancel" };
  const answer = JSON.parse(
    await channel.ask(kind, { case: "elicitation", value: elicitation }, signal),
  ) as ElicitResult;
  return withDefaults(answer, params);
}

/** What a person leaves out of a form has the form's default. */
export function withDefaults(answer: ElicitResult, params: ElicitRequest["params"]): ElicitResult {
  if (answer.action !== "accept" || params.mode === "url") return answer;
  const defaults = Object.entries(params.requestedSchema.properties).flatMap(([name, property]) =>
    "default" in property && property.default !== undefined ? [[name, property.default] as const] : [],
  );
  return { ...answer, content: { ...Object.fromEntries(defaults), ...answer.content } };
}

/** Refuses a URL that nobody should open. */
export function elicitationFrom(params: ElicitRequest["params"]): { kind: InputKind; elicitation: Elicitation } {
  const { message } = params;
  if (params.mode !== "url") {
    const requestedSchemaJson = JSON.stringify(params.requestedSchema);
    return { kind: InputKind.FORM, elicitation: create(ElicitationSchema, { message, requestedSchemaJson }) };
  }
  if (!["http:", "https:"].includes(URL.parse(params.url)?.protocol ?? "")) {
    refuse("invalid_argument", "a person is shown http: and https: URLs only", { reason: "INVALID_REQUEST" });
  }
  return { kind: InputKind.URL, elicitation: create(ElicitationSchema, { message, url: params.url }) };
}
