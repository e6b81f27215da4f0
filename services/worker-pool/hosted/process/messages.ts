import type { HostedTool, JsonObject } from "../../../../sdk/typescript/hosted.ts";
import type { Answer } from "../../calls/answer.ts";

/** A tool as its module describes it: in the module's words, so that its process need not load the contract. */
export interface DescribedTool extends Pick<HostedTool, "effect" | "timeoutMs"> {
  name: string;
  description: string;
  inputSchemaJson: string;
  outputSchemaJson: string;
}

/** What a call's tool asks of the service. */
export type Ask =
  | { kind: "list tools" }
  | { kind: "call tool"; name: string; argumentsJson: string }
  | { kind: "generate"; prompt: string; instructions: string; agent: string };

/** From the service to a module's process: a line of JSON each, as the other way. */
export type ToModule =
  | { kind: "initialize" }
  | {
      kind: "call";
      id: number;
      tool: string;
      callId: string;
      arguments: JsonObject;
      config: JsonObject;
      secrets: Record<string, string>;
    }
  | { kind: "cancel"; id: number; reason: string }
  /** `askId` is the module's own; `valueJson` is JSON text. */
  | { kind: "reply"; askId: number; valueJson: string }
  | { kind: "refusal"; askId: number; error: string }
  | { kind: "ping" }
  | { kind: "shutdown" };

/** From a module's process to the service. */
export type FromModule =
  /** `initializes`: the module has something to do before its first call. */
  | { kind: "described"; tools: DescribedTool[]; initializes: boolean }
  /** The detail is for operators. */
  | { kind: "refused"; reason: string; detail: string }
  /** Nobody caught an error, which ends the process. */
  | { kind: "fault"; reason: string }
  | { kind: "initialized" }
  | { kind: "answer"; id: number; answer: Answer }
  | { kind: "progress"; id: number; done: number; total: number; message: string }
  /** Without an id it belongs to no call. */
  | { kind: "log"; id?: number; level: string; message: string; fieldsJson: string }
  | { kind: "ask"; askId: number; id: number; ask: Ask }
  | { kind: "pong" }
  | { kind: "shut down" };
