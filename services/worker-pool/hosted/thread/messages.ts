import type { Duration } from "@bufbuild/protobuf/wkt";
import type { Effect, LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Answer } from "../../calls/answer.ts";

/** A tool as its module describes it. */
export interface DescribedTool {
  name: string;
  description: string;
  inputSchemaJson: string;
  outputSchemaJson: string;
  effect: Effect;
  timeout?: Duration;
}

/** What a call's tool asks of the service. */
export type Ask =
  | { kind: "list tools" }
  | { kind: "call tool"; name: string; argumentsJson: string }
  | { kind: "generate"; prompt: string; instructions: string; agent: string };

/** From the service to a module's thread. */
export type ToThread =
  | { kind: "initialize" }
  | {
      kind: "call";
      id: number;
      tool: string;
      callId: string;
      argumentsJson: string;
      configJson: string;
      secretsJson: string;
    }
  | { kind: "cancel"; id: number; reason: string }
  /** `askId` is the thread's own; `valueJson` is JSON text. */
  | { kind: "reply"; askId: number; valueJson: string }
  | { kind: "refusal"; askId: number; error: string }
  | { kind: "ping" }
  | { kind: "shutdown" };

/** From a module's thread to the service. */
export type FromThread =
  | { kind: "described"; tools: DescribedTool[] }
  | { kind: "refused"; reason: string }
  | { kind: "initialized" }
  | { kind: "answer"; id: number; answer: Answer }
  | { kind: "progress"; id: number; done: number; total: number; message: string }
  /** Without an id it belongs to no call. */
  | { kind: "log"; id?: number; level: LogLevel; message: string; fieldsJson: string }
  | { kind: "ask"; askId: number; id: number; ask: Ask }
  | { kind: "pong" }
  | { kind: "shut down" };
