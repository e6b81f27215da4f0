import { Rows } from "../../parts/rows.tsx";
import { durationOf } from "../../parts/words.ts";
import type { Span } from "../timeline/spans.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** The width of a line of time in its own units. */
const width = 1_000;

interface WaterfallProps {
  timeline: Timeline;
  /** Until when open spans go, in ms of the clock. */
  nowMs: number;
  chosen: string;
  onChoose: (id: string) => void;
}

/** The spans of a run on a common line of time: each says in words what its bar shows. */
export function Waterfall({ timeline, nowMs, chosen, onChoose }: WaterfallProps) {
  const start = timeline.startMs ?? nowMs;
  const end = Math.max(nowMs, start + 1);
  const x = (ms: number) => (width * (ms - start)) / (end - start);
  return (
    <div class="waterfall">
      <div class="axis" aria-hidden="true">
        <span>0</span>
        <span>{durationOf((end - start) / 2)}</span>
        <span>{durationOf(end - start)}</span>
      </div>
      <Rows
        label="Turns, model requests, calls and waits"
        rows={timeline.spans}
        rowHeight={30}
        narrowRowHeight={48}
        isFollowing={timeline.draft !== undefined}
        keyOf={(span) => span.id}
        render={(span) => (
          <SpanRow
            span={span}
            from={x(span.startMs)}
            to={x(span.endMs ?? end)}
            tookMs={(span.endMs ?? end) - span.startMs}
            isChosen={span.id === chosen}
            onChoose={() => onChoose(span.id)}
          />
        )}
      />
    </div>
  );
}

interface SpanRowProps {
  span: Span;
  from: number;
  to: number;
  tookMs: number;
  isChosen: boolean;
  onChoose: () => void;
}

function SpanRow({ span, from, to, tookMs, isChosen, onChoose }: SpanRowProps) {
  const isOpen = span.endMs === undefined;
  const took = span.kind === "note" ? "" : `${durationOf(tookMs)}${isOpen ? " …" : ""}`;
  return (
    <button
      type="button"
      class={`span ${span.kind}${span.isFault ? " is-fault" : ""}${isOpen ? " is-open" : ""}`}
      aria-pressed={isChosen}
      onClick={onChoose}
    >
      <span class="span-label clip" title={span.label}>
        {span.isFault ? "✕ " : ""}
        {span.label}
        {span.progress && <em> {span.progress}</em>}
      </span>
      <svg viewBox={`0 0 ${width} 20`} preserveAspectRatio="none" aria-hidden="true">
        {span.kind === "note" ? (
          <rect class="bar" x={Math.min(from, width - 3)} y="2" width="3" height="16" />
        ) : (
          <rect class="bar" x={Math.min(from, width - 3)} y="4" width={Math.max(to - from, 3)} height="12" />
        )}
      </svg>
      <span class="span-time quiet">{took}</span>
    </button>
  );
}
