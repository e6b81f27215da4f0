import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface RowsProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  /** Of each, in pixels. */
  readonly rowHeight: number;
  /** The same on a phone, where it differs. */
  readonly narrowRowHeight?: number;
  readonly keyOf: (row: T) => string;
  readonly render: (row: T) => ComponentChildren;
  /** Told when the last rows are in sight. */
  readonly onEnd?: (() => void) | undefined;
  /** Whether the newest row, the last, stays in sight until one scrolls away from it. */
  readonly isFollowing?: boolean;
}

/** Rows that are out of sight on either side and drawn all the same, so that scrolling meets no gap. */
const spareRows = 5;

/** Any number of rows of one height, of which those in sight are drawn. */
export function Rows<T>({ label, rows, keyOf, render, onEnd, isFollowing = false, ...heights }: RowsProps<T>) {
  const rowHeight = useRowHeight(heights);
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(800);
  const isAtEnd = useRef(true);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);

  useEffect(() => {
    const element = box.current;
    if (element && isFollowing && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [rows.length, isFollowing]);

  const shownFrom = Math.min(top.value, Math.max(0, rows.length * rowHeight - height.value)); // there may be fewer rows than there were
  const first = Math.max(0, Math.floor(shownFrom / rowHeight) - spareRows);
  const last = Math.min(rows.length, Math.ceil((shownFrom + height.value) / rowHeight) + spareRows);
  const look = () => {
    const element = box.current;
    if (!element) return;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    isAtEnd.current = left < rowHeight;
    if (left < rowHeight * spareRows) onEnd?.();
  };
  useEffect(onEnd ? look : () => {}); // rows that fill no box are not scrolled
  useEffect(() => {
    if (box.current && leftAt() > 0) box.current.scrollTop = leftAt(); // who comes back goes on where one was
  }, [rows.length > 0]);
  const onScroll = () => {
    top.value = box.current?.scrollTop ?? 0;
    look();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows are placed by hand
    <div
      class="rows"
      role="region"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
      tabIndex={0}
      ref={box}
      onScroll={onScroll}
      onKeyDown={goByArrow}
      onClick={() => history.replaceState({ rowsTop: top.value }, "")}
    >
      <div class="rows-space" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((row, index) => (
          <div
            key={keyOf(row)}
            class="row"
            style={`transform:translateY(${(first + index) * rowHeight}px);height:${rowHeight}px`}
          >
            {render(row)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** How far the rows were scrolled, in pixels, when this entry of the history was left by one of them. */
export function leftAt(): number {
  return history.state?.rowsTop ?? 0;
}

const narrow = globalThis.matchMedia?.("(max-width: 700px)");

function useRowHeight({ rowHeight, narrowRowHeight }: Pick<RowsProps<never>, "rowHeight" | "narrowRowHeight">): number {
  const isNarrow = useSignal(narrow?.matches ?? false);
  useEffect(() => {
    const look = (): void => {
      isNarrow.value = narrow.matches;
    };
    narrow.addEventListener("change", look);
    return () => narrow.removeEventListener("change", look);
  }, [isNarrow]);
  return isNarrow.value ? (narrowRowHeight ?? rowHeight) : rowHeight;
}

/** The arrows lead from row to row: to the first that is in sight, where none has the focus. */
function goByArrow(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const { currentTarget: box, target } = event;
  if (step === undefined || !(box instanceof HTMLElement) || !(target instanceof HTMLElement)) return;
  if (target.matches("input, select, textarea")) return; // the arrows are theirs
  const rows = [...box.querySelectorAll(".row")];
  const at = rows.findIndex((row) => row.contains(target));
  const next =
    at === -1
      ? rows.find((row) => row.getBoundingClientRect().top >= box.getBoundingClientRect().top)
      : rows[at + step];
  const place = next?.querySelector<HTMLElement>("a, button");
  if (!place) return;
  event.preventDefault();
  place.focus();
}
