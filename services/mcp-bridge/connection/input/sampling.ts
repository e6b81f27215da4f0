import { create } from "@bufbuild/protobuf";
import type { CreateMessageRequest, CreateMessageResult } from "@modelcontextprotocol/client";
import { InputKind, type InputResponses, SamplingSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Ask } from "./elicitation.ts";

type Params = CreateMessageRequest["params"];

export function samplingFrom(params: Params) {
  return create(SamplingSchema, { paramsJson: JSON.stringify(params) });
}

/** A request of a server to have a text written, on behalf of the call that it is about. */
export async function answerSampling(
  params: Params,
  ask: Ask | undefined,
  signal: AbortSignal,
): Promise<CreateMessageResult> {
  if (ask === undefined) return refuseSampling("it is not known for which call");
  const request = { case: "sampling", value: samplingFrom(params) } as const;
  const answer: unknown = JSON.parse(await ask(InputKind.SAMPLING, request, signal));
  if (isObject(answer) && answer.role !== undefined) return answer as CreateMessageResult;
  return refuseSampling(
    isObject(answer) && typeof answer.error === "string" ? answer.error : "whoever called asks none",
  );
}

/** Why a text was not written that a call waits for; undefined where all were. */
export function refusedSampling({ responses }: InputResponses): string | undefined {
  const answers = responses.map(({ resultJson }): unknown => JSON.parse(resultJson));
  const refused = answers.find((answer) => isObject(answer) && typeof answer.error === "string");
  return isObject(refused) ? textOf(String(refused.error)) : undefined;
}

const textOf = (why: string) => `no model answers the server: ${why}`;

export function refuseSampling(why: string): never {
  return refuse("failed_precondition", textOf(why), { reason: "MCP_REQUEST_REFUSED" });
}
