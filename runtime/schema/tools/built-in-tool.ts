import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { type Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { inForm } from "../zod-form.ts";
import { parseToolArguments } from "./tool-arguments.ts";

/** What a built-in tool is described with, and what its arguments are read by. */
export interface BuiltInDefinition<A extends z.ZodObject> {
  name: string;
  description: string;
  effect: Effect;
  arguments: A;
}

export function builtInTool({ name, description, effect, arguments: form }: BuiltInDefinition<z.ZodObject>): Tool {
  return create(ToolSchema, {
    ...{ name, description, effect },
    inputSchemaJson: JSON.stringify(z.toJSONSchema(form, { io: "input" })),
    executionType: ExecutionType.BUILTIN,
    visible: false,
  });
}

/** The router validates too, but by the catalogue's schema, which its operator may have written; and others call without it. */
export function builtInArguments<A extends z.ZodObject>(form: A, argumentsJson: string): z.infer<A> {
  return inForm(form, parseToolArguments(argumentsJson));
}
