import type {
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { type Answer, type AnswerPart, AnswerTooLarge, ModelInterrupted, type Piece, type Used } from "./answer.ts";
import { refuseProviderTools } from "./provider-tools.ts";
import { isTold, usageFrom } from "./usage.ts";

type Spoken = { kind: "text" | "reasoning"; text: string; metadata: SharedV4ProviderMetadata };
type Collected = Spoken | Extract<AnswerPart, { kind: "call" }>;

export type Collector = ReturnType<typeof createCollector>;

/**
 * Makes an answer of the parts of a stream. What a provider says of a text, a thought or a call by the way (signatures,
 * encrypted thoughts, ids of its own) may come with its start, in its middle or with its end; all of it is kept, as it wants
 * it back. A thought may be nothing but that.
 *
 * What is over `maxBytes` is neither kept nor passed on: `take` throws `AnswerTooLarge`.
 */
export function createCollector(
  requestedModelId: string,
  onPiece: (piece: Piece) => void,
  { prompt = [], maxBytes = Number.POSITIVE_INFINITY }: { prompt?: LanguageModelV4Prompt; maxBytes?: number } = {},
) {
  const parts: Collected[] = [];
  const openById = { text: new Map<string, Spoken>(), reasoning: new Map<string, Spoken>() };
  const namesByCallId = new Map<string, string>();
  const streamedBytesByCallId = new Map<string, number>();
  let saidBytes = 0;
  let modelId = requestedModelId;
  let finish: Extract<LanguageModelV4StreamPart, { type: "finish" }> | undefined;

  function count(bytes: number): void {
    saidBytes += bytes;
    if (saidBytes > maxBytes) throw new AnswerTooLarge(saidBytes, maxBytes);
  }

  function of(kind: Spoken["kind"], id: string): Spoken {
    const known = openById[kind].get(id);
    if (known !== undefined) return known;
    const part: Spoken = { kind, text: "", metadata: {} };
    openById[kind].set(id, part);
    parts.push(part);
    return part;
  }

  function extend(kind: Spoken["kind"], id: string, text: string): Spoken {
    count(Buffer.byteLength(text));
    const part = of(kind, id);
    part.text += text;
    if (text !== "") onPiece({ kind, text });
    return part;
  }

  function countStreamed(callId: string, bytes: number): void {
    count(bytes);
    streamedBytesByCallId.set(callId, (streamedBytesByCallId.get(callId) ?? 0) + bytes);
  }

  /** A call comes in pieces, then whole, or whole alone. */
  function unstreamedBytes(callId: string, name: string, argumentsJson: string): number {
    const streamed = streamedBytesByCallId.get(callId);
    streamedBytesByCallId.delete(callId);
    const bytes = Buffer.byteLength(argumentsJson);
    return streamed === undefined ? bytes + Buffer.byteLength(name) : Math.max(0, bytes - streamed);
  }

  function take(part: LanguageModelV4StreamPart): void {
    refuseProviderTools(part);
    switch (part.type) {
      case "text-start":
      case "text-end":
      case "reasoning-start":
      case "reasoning-end":
        if (part.providerMetadata !== undefined) learn(of(kindOf(part), part.id), part.providerMetadata);
        if (part.type.endsWith("-end")) openById[kindOf(part)].delete(part.id);
        return;
      case "text-delta":
      case "reasoning-delta":
        learn(extend(kindOf(part), part.id, textFrom(part.delta)), part.providerMetadata);
        return;
      case "tool-input-start":
        count(Buffer.byteLength(textFrom(part.toolName)));
        namesByCallId.set(part.id, part.toolName);
        streamedBytesByCallId.set(part.id, 0);
        return;
      case "tool-input-delta":
        countStreamed(part.id, Buffer.byteLength(textFrom(part.delta)));
        onPiece({ kind: "arguments", callId: part.id, name: namesByCallId.get(part.id) ?? "", text: part.delta });
        return;
      case "tool-call": {
        const [id, name, text] = [part.toolCallId, part.toolName, part.input].map(textFrom) as [string, string, string];
        const argumentsJson = text.trim() === "" ? "{}" : text; // some models write nothing
        count(unstreamedBytes(id, name, argumentsJson));
        parts.push({ kind: "call", id, name, argumentsJson, metadataJson: jsonFrom(part.providerMetadata) });
        return;
      }
      case "response-metadata":
        modelId = part.modelId ?? modelId;
        return;
      case "finish":
        finish = part;
        return;
      case "error":
        throw part.error;
      default:
        return; // sources, files and warnings are not part of the conversation
    }
  }

  function answer(): Answer {
    const reason = finish && endOf(finish.finishReason);
    if (finish === undefined || reason === undefined || reason === "interrupted" || reason === "error")
      throw new ModelInterrupted(`the model's stream ended without an end (${finish?.finishReason.raw ?? "cut"})`);
    const spoken = parts.map(partFrom).filter(saysSomething);
    return { parts: spoken, finishReason: reason, usage: usageFrom(finish.usage, { prompt, saidBytes }), modelId };
  }

  /** What an answer that comes to nothing used up to here; nothing as long as the model has said and counted nothing. */
  function used(): Used | undefined {
    const usage = finish?.usage;
    if (saidBytes === 0 && !(usage && isTold(usage))) return undefined;
    return { modelId, usage: usageFrom(usage, { prompt, saidBytes }) };
  }

  return { take, answer, used };
}

/** Ends for which a package has no word, as vLLM, DeepSeek, Mistral and GLM say them. */
const otherEnds: [RegExp, LanguageModelV4FinishReason["unified"]][] = [
  [/abort|error|resource/, "interrupted"],
  [/length|max_tokens/, "length"],
  [/filter|safety|sensitive/, "content-filter"],
];

function endOf({ unified, raw = "" }: LanguageModelV4FinishReason): LanguageModelV4FinishReason["unified"] {
  if (unified !== "other") return unified;
  return otherEnds.find(([words]) => words.test(raw.toLowerCase()))?.[1] ?? "other";
}

const kindOf = ({ type }: { type: string }) => (type.startsWith("text") ? "text" : "reasoning");

/** What the type promises to be text; a package may not keep that. */
function textFrom(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function partFrom(part: Collected): AnswerPart {
  if (part.kind === "call") return part;
  return { kind: part.kind, text: part.text, metadataJson: jsonFrom(part.metadata) };
}

function saysSomething(part: AnswerPart): boolean {
  return part.kind === "call" || part.text !== "" || (part.kind === "reasoning" && part.metadataJson !== "");
}

function learn(part: Spoken, metadata: SharedV4ProviderMetadata | undefined): void {
  if (metadata === undefined) return;
  for (const [provider, values] of Object.entries(metadata))
    part.metadata[provider] = { ...part.metadata[provider], ...values };
}

function jsonFrom(metadata: SharedV4ProviderMetadata | undefined): string {
  return metadata === undefined || Object.keys(metadata).length === 0 ? "" : JSON.stringify(metadata);
}
