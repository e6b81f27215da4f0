import type { Draft } from "../timeline/timeline.ts";

/** Characters of the end that are shown while they are written. */
const shownCharacters = 4_000;

/** What the model writes just now. */
export function DraftView({ draft }: { draft: Draft }) {
  const calls = [...draft.calls].map(([callId, { name, text }]) => ({ callId, text: `→ ${name} ${text}` }));
  return (
    <div class="detail" aria-live="off">
      <h2>turn {draft.turn}, as it is written</h2>
      {draft.reasoning && <pre class="draft quiet">{endOf(draft.reasoning)}</pre>}
      {draft.text && <pre class="draft">{endOf(draft.text)}</pre>}
      {calls.map(({ callId, text }) => (
        <pre key={callId} class="draft">
          {endOf(text)}
        </pre>
      ))}
    </div>
  );
}

function endOf(text: string): string {
  return text.length > shownCharacters ? `…${text.slice(-shownCharacters)}` : text;
}
