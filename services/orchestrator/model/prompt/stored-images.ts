import type { LanguageModelV4, LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { streamingModel } from "../providers/late-model.ts";
import { type Output, type OutputPart, withOutputs } from "../providers/tool-outputs.ts";
import { STORED, textOfParts, wordsOfFile } from "./result-output.ts";

/** The bytes that are stored under a reference; undefined for what is larger, or not kept any more. */
export type ReadStored = (
  reference: string,
  limits: { maxBytes: number; signal: AbortSignal | undefined },
) => Promise<Uint8Array | undefined>;

/** Those whose packages pass images in results of tools on as images; others write them out as text. */
const TAKE_IMAGES: ReadonlySet<string> = new Set([
  "@ai-sdk/amazon-bedrock",
  "@ai-sdk/anthropic",
  "@ai-sdk/google",
  "@ai-sdk/google-vertex",
  "@ai-sdk/openai",
]);

/** The option of an agent's model that says so itself. */
export const TOOL_IMAGES = "tool_images";

function takesImages({ provider, options = {} }: Pick<Model, "provider" | "options">): boolean {
  const wanted = options[TOOL_IMAGES];
  return typeof wanted === "boolean" ? wanted : TAKE_IMAGES.has(provider);
}

/** Of one request; older images are told by their references. */
const MOST_IMAGES = 50;
const MAX_IMAGE_BYTES = 3_750_000;
const MAX_BYTES = 16 * 2 ** 20;

/** The model, which is shown the images of results where it takes them, and else what stands in their place. */
export function showingImages(language: LanguageModelV4, config: Model, read: ReadStored): LanguageModelV4 {
  const isTaken = takesImages(config);
  return streamingModel(language, async (options) => {
    const limits = { maxBytes: MAX_IMAGE_BYTES, signal: options.abortSignal };
    const images = isTaken ? await imagesIn(options.prompt, (reference) => read(reference, limits)) : new Map();
    const shown = (message: LanguageModelV4Message) => withOutputs(message, (parts) => shownOutput(parts, images));
    return language.doStream({ ...options, prompt: options.prompt.map(shown) });
  });
}

async function imagesIn(
  prompt: LanguageModelV4Prompt,
  read: (reference: string) => Promise<Uint8Array | undefined>,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const references = new Set(prompt.flatMap(filesOf).map(referenceOf).reverse());
  const images = new Map<string, Uint8Array>();
  let bytes = 0;
  for (const reference of references) {
    if (reference === undefined) continue;
    const image = await read(reference);
    if (image === undefined) continue;
    bytes += image.length;
    if (bytes > MAX_BYTES || images.size === MOST_IMAGES) break;
    images.set(reference, image);
  }
  return images;
}

function filesOf({ role, content }: LanguageModelV4Message): OutputPart[] {
  if (role !== "tool") return [];
  return content.flatMap((part) =>
    part.type === "tool-result" && part.output.type === "content" ? part.output.value : [],
  );
}

function referenceOf(part: OutputPart): string | undefined {
  return part.type === "file" && part.data.type === "reference" ? part.data.reference[STORED] : undefined;
}

function shownOutput(parts: readonly OutputPart[], images: ReadonlyMap<string, Uint8Array>): Output {
  const value = parts.map((one) => shownPart(one, images));
  const isText = value.every(({ type }) => type === "text");
  return isText ? { type: "text", value: textOfParts(value) } : { type: "content", value };
}

function shownPart(part: OutputPart, images: ReadonlyMap<string, Uint8Array>): OutputPart {
  const reference = referenceOf(part);
  if (part.type !== "file" || reference === undefined) return part;
  const data = images.get(reference);
  if (data === undefined) return { type: "text", text: wordsOfFile(part) };
  const { filename: _, ...file } = part;
  return { ...file, data: { type: "data", data } };
}
