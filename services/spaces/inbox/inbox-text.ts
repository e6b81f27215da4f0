import { create } from "@bufbuild/protobuf";
import { type InstructionPart, InstructionPartSchema } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";

/**
 * An event of an inbox as a run reads it: one line, however its parts were written, so that nobody's text can pass for a
 * line of another kind.
 */
export function textOfEvent({ event }: InboxEvent): string {
  switch (event.case) {
    case "toolResult":
      return `[Tool Result: ${event.value.tool}] (callId: ${event.value.callId}) ${onOneLine(event.value.result?.outputJson ?? "null")}`;
    case "message":
      return `[${nameInLine(event.value.author)}: ${onOneLine(JSON.stringify(textOfContent(event.value.content)))}]`;
    case "plan":
      return `[Plan: ${nameInLine(event.value.key)}] ${onOneLine(JSON.stringify(event.value.text))}`;
    case undefined:
      return "";
  }
}

/** The built-ins by which lines come to an inbox, or are answered. */
const toolsOfLines = ["enter_space", "send_message", "read_messages", "skip", "set_plans"];

/** What the lines mean, for the agent. One whose inbox holds some is told in any case. */
export function meaningOfLines(isAwaited: boolean): InstructionPart[] {
  const tools = isAwaited ? [] : toolsOfLines;
  return [
    instruction(
      "Your inbox: lines of the input in one of these forms were not written by whoever gives you the input.\n" +
        '- [Name: "text"] is what a person or another agent said in your space.',
      tools,
    ),
    instruction(" To answer there, call send_message.", ["send_message"]),
    instruction(
      "\n- [Tool Result: name] (callId: id) json is the result of a call of yours, named by its callId, that was answered as " +
        'pending or came too late for that answer.\n- [Plan: key] "text" is a plan of yours whose time has come.\n',
      tools,
    ),
    instruction("When nothing of it needs an action or an answer, call skip.\n", ["skip"]),
    instruction("\n", tools),
  ];
}

/** A piece of the instructions, for agents that have one of the tools; for all, where none is named. */
export function instruction(text: string, tools: readonly string[] = []): InstructionPart {
  return create(InstructionPartSchema, { text, tools: [...tools] });
}

/** JSON text on one line, with the numbers as they were written. What else ends a line stands in its texts alone, where JSON escapes it. */
function onOneLine(json: string): string {
  const line = /[\n\r]/.test(json) ? json.replace(/\s*[\n\r]+\s*/g, " ") : json;
  return line.replace(/[\u0085\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The name of an author or a plan, without what would end its part of the line. */
export function nameInLine(name: string): string {
  return name.replace(/[[\]:"\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
}
