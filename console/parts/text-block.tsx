import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Characters that are shown unless one asks for all. */
const shownCharacters = 20_000;

/** What is shown of a text, and the button for all of a large one. */
function useBeginning(text: string) {
  const isWhole = useSignal(false);
  const isShort = isWhole.value || text.length <= shownCharacters;
  const rest = (
    <button
      type="button"
      onClick={() => {
        isWhole.value = true;
      }}
    >
      show all {text.length.toLocaleString()} characters
    </button>
  );
  return { shown: isShort ? text : text.slice(0, shownCharacters), rest: isShort ? null : rest };
}

/** What somebody said, line by line; a large one is shown in part first. */
export function LongText({ text }: { text: string }) {
  const { shown, rest } = useBeginning(text);
  return (
    <>
      <p class="answer">{shown}</p>
      {rest}
    </>
  );
}

/** Text as it is, such as JSON or what a model wrote: it scrolls, is copied whole, and a large one is shown in part first. */
export function TextBlock({ label, text }: { label: string; text: string }) {
  const { shown, rest } = useBeginning(text);
  return (
    <figure class="text-block">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} label="copy" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <pre tabIndex={0}>{shown}</pre>
      {rest}
    </figure>
  );
}

/** How long a button says what came of it. */
const saidMs = 2_000;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const said = useSignal("");
  useEffect(() => {
    if (said.value === "") return;
    const timer = setTimeout(() => {
      said.value = "";
    }, saidMs);
    return () => clearTimeout(timer);
  }, [said.value]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "copied";
    } catch {
      said.value = "the browser does not let this page copy";
    }
  };
  return (
    <button type="button" class="small" onClick={copy}>
      {said.value || label}
    </button>
  );
}
