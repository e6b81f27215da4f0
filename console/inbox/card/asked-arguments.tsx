import { useSignal } from "@preact/signals";
import { prettyJson } from "../../parts/text/pretty-json.ts";
import { TextBlock } from "../../parts/text-block.tsx";

/** Characters of a text that is read as a sentence. */
const shortCharacters = 500;

/** What a tool is asked: short texts as lines, with the JSON behind a fold; all else as JSON. */
export function AskedArguments({ json }: { json: string }) {
  const isOpen = useSignal(false);
  const texts = textsFrom(json);
  if (!texts) return <TextBlock label="asked" text={prettyJson(json)} />;
  return (
    <>
      {texts.map(([name, text]) => (
        <p key={name}>
          <span class="quiet">{name}:</span> <span class="answer">{text}</span>
        </p>
      ))}
      <details
        onToggle={(event) => {
          isOpen.value = event.currentTarget.open;
        }}
      >
        <summary>as JSON</summary>
        {isOpen.value && <TextBlock label="asked" text={prettyJson(json)} />}
      </details>
    </>
  );
}

/** Undefined where something is no short text. */
export function textsFrom(json: string): [string, string][] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  return entries.every(([, text]) => typeof text === "string" && text.length <= shortCharacters) ? entries : undefined;
}
