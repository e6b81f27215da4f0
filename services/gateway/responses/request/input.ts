import type { MessageInitShape } from "@bufbuild/protobuf";
import { z } from "zod";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { InputItemSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { CreateBody, Typed } from "./body.ts";
import { summaryFrom } from "./compaction.ts";
import { type ContentPart, contentFrom, contentSchema, textFrom } from "./content.ts";
import { nameWithin } from "./tools.ts";

type InputItem = MessageInitShape<typeof InputItemSchema>;

export interface Input {
  /** What is said before all else for the system: instructions. */
  readonly system: string;
  readonly items: InputItem[];
}

/** The input of the run; a text is what the user says. An input without words, or with instructions alone, makes the agent begin. */
export function inputFrom({ input, tools }: CreateBody): Input {
  const given: readonly Typed[] = typeof input === "string" ? [{ role: "user", content: input }] : (input ?? []);
  const items = given.map((item, n) => ({ item, place: `input[${n}]` }));
  const begin = items.findIndex(({ item }) => !isInstruction(item));
  const opening = begin < 0 ? items : items.slice(0, begin);
  const system = opening.map(({ item, place }) => textFrom(inForm(message, item, place).content, place)).join("\n\n");
  const labels = (tools ?? []).flatMap(({ type, server_label }) => (type === "mcp" ? [server_label] : []));
  const spoken = itemsFrom(items.slice(opening.length), labels);
  return { system, items: given.length > 0 && spoken.length === 0 ? [said(Role.USER, BEGIN)] : spoken };
}

/** Models answer what a user says. */
const BEGIN = "[Begin, by your instructions]";

const message = z.looseObject({ role: z.enum(["user", "assistant", "system", "developer"]), content: contentSchema });
const call = z.looseObject({
  ...{ call_id: z.string(), name: z.string(), arguments: z.string() },
  namespace: z.string().nullish(),
});
const output = z.looseObject({ call_id: z.string(), output: contentSchema });
const compaction = z.looseObject({ encrypted_content: z.string() });
/** As clients have it of a tool's execution, of the protocol or of HTTP; a text in older ones. */
const failure = z.union([
  z.string(),
  z.looseObject({ message: z.string() }).transform(({ message }) => message),
  z.looseObject({ content: z.unknown() }).transform(({ content }) => textsOf(content)),
]);
const executed = z.looseObject({
  id: z.string(),
  server_label: z.string().nullish(),
  name: z.string(),
  arguments: z.string(),
  output: z.string().nullish(),
  error: failure.nullish(),
});

function textsOf(content: unknown): string {
  const texts = z.array(z.looseObject({ text: z.string() })).safeParse(content);
  return texts.success ? texts.data.map(({ text }) => text).join("\n") : JSON.stringify(content ?? null);
}

const isInstruction = ({ type = "message", role }: Typed) =>
  type === "message" && (role === "system" || role === "developer");

/** `labels`: of the request's MCP servers. Outputs have no place for files, nor has anything between them: a message behind them has the files. */
function itemsFrom(given: readonly { item: Typed; place: string }[], labels: readonly unknown[]): InputItem[] {
  const items: InputItem[] = [];
  const files: ContentPart[] = [];
  for (const { item, place } of given) {
    const next = itemFrom(item, place, files, labels);
    if (next.some((made) => made.item?.case !== "output")) items.push(...shown(files));
    items.push(...next);
  }
  return [...items, ...shown(files)];
}

function shown(files: ContentPart[]): InputItem[] {
  if (files.length === 0) return [];
  return [{ item: { case: "message", value: { role: Role.USER, content: files.splice(0) } } }];
}

/** What an output says in words; its files join those that are to be shown. */
function wordsOf(parts: readonly ContentPart[], files: ContentPart[]): string {
  const words = parts.map((given) =>
    given.part?.case === "text" ? given.part.value : `[File ${files.push(given)}: in the message behind the outputs]`,
  );
  return words.join("\n");
}

function itemFrom(item: Typed, place: string, files: ContentPart[], labels: readonly unknown[]): InputItem[] {
  switch (item.type ?? "message") {
    case "message":
      return messageFrom(inForm(message, item, place), place);
    case "function_call": {
      const { call_id: callId, namespace, name, arguments: argumentsJson } = inForm(call, item, place);
      return [calledFrom(callId, nameWithin(namespace, name), argumentsJson)];
    }
    case "function_call_output": {
      const given = inForm(output, item, place);
      return [answeredFrom(given.call_id, wordsOf(contentFrom(given.output, `${place}.output`), files))];
    }
    case "mcp_call": {
      const { id, server_label, name, arguments: argumentsJson, output: result, error } = inForm(executed, item, place);
      const known = nameWithin(labels.includes(server_label) ? server_label : undefined, name);
      return [calledFrom(id, known, argumentsJson), answeredFrom(id, result ?? "", error ?? undefined)];
    }
    case "compaction":
      return [said(Role.USER, summaryFrom(inForm(compaction, item, place).encrypted_content))];
    case "item_reference": // to an item that stands before it
    case "reasoning": // what models need of their thoughts is in the log of the response before
      return [];
    default:
      return refuseField(`${place}.type`, `${JSON.stringify(item.type)} is no item that is known here`);
  }
}

function calledFrom(id: string, name: string, argumentsJson: string): InputItem {
  return { item: { case: "call", value: { callId: fittingId(id), name, argumentsJson } } };
}

function answeredFrom(id: string, text: string, error?: string): InputItem {
  const outcome = error
    ? ({ case: "error", value: error } as const)
    : ({ case: "resultJson", value: JSON.stringify(text) } as const);
  return { item: { case: "output", value: { callId: fittingId(id), outcome } } };
}

/** Calls of elsewhere may have ids of other forms. */
const fittingId = (id: string) => id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 128);

/** No provider takes a message of a user without words and files. */
function messageFrom(given: z.infer<typeof message>, place: string): InputItem[] {
  if (given.role === "user") {
    const content = contentFrom(given.content, `${place}.content`);
    const isEmpty = content.every(({ part }) => part?.case === "text" && part.value.trim() === "");
    return isEmpty ? [] : [{ item: { case: "message", value: { role: Role.USER, content } } }];
  }
  const text = textFrom(given.content, place);
  // prompts have one system message, which stands first
  return [given.role === "assistant" ? said(Role.ASSISTANT, text) : said(Role.USER, `[Further instructions]\n${text}`)];
}

function said(role: Role, text: string): InputItem {
  return { item: { case: "message", value: { role, content: textContent(text) } } };
}
