import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type RunContext, RunContextSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { refuse } from "../failure/failure.ts";

export function encodeRunContext(context: MessageInitShape<typeof RunContextSchema>): Uint8Array {
  return toBinary(RunContextSchema, create(RunContextSchema, context));
}

/** Refuses bytes that nobody can have been given: `invalid_argument`. */
export function decodeRunContext(bytes: Uint8Array): RunContext {
  try {
    return fromBinary(RunContextSchema, bytes);
  } catch (cause) {
    const text = "run_context is not what a run leaves to its calls: hand on what you were given";
    return refuse("invalid_argument", text, { reason: "INVALID_REQUEST", cause });
  }
}
