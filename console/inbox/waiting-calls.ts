import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { clientOf } from "../suite/connection.ts";

/** How often it is asked what waits, in ms: the contract has no watch of it. */
export const inboxMs = 2_000;

/** Calls that somebody outside of the suite is to answer; all of them, or of one session. */
export async function listWaitingCalls(signal: AbortSignal, sessionId = ""): Promise<ToolCall[]> {
  const states = [ToolCallState.WAITING, ToolCallState.PENDING];
  const calls: ToolCall[] = [];
  let pageToken = "";
  do {
    const page = await clientOf(ToolCallService).listToolCalls(
      { sessionId, states, pageSize: 1_000, pageToken },
      { signal },
    );
    calls.push(...page.calls);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return calls;
}

/** Whether a person is to answer it; else a program that watches for its tool. */
export function isForPeople(call: ToolCall): boolean {
  return call.question !== undefined || call.executionType === ExecutionType.SPACE;
}

export interface Question {
  /** What is asked, in words; empty where the arguments say it all. */
  readonly message: string;
  /** An address that the person is to open instead of a form; empty if none. */
  readonly url: string;
  readonly schemaJson: string;
}

/** What a person is asked by a call. */
export function questionOf({ question, argumentsJson, outputSchemaJson }: ToolCall): Question {
  const given = objectFrom(argumentsJson);
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  if (question === undefined) return { message: "", url: "", schemaJson: outputSchemaJson };
  const { message, url, requestedSchema } = given;
  return { message: text(message), url: text(url), schemaJson: JSON.stringify(requestedSchema ?? { properties: {} }) };
}

function objectFrom(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
