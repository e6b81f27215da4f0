import type { ComponentChildren } from "preact";

/** What the suite said against something. */
export function Fault({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <p class="fault" role="alert">
      {text}
    </p>
  );
}

/** What stands where there is nothing, and what to do about it. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export type Tone = "good" | "bad" | "busy" | "wait" | "quiet";

/** A state in a word, which its colour only repeats. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
