import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Fault } from "../../parts/notice.tsx";
import type { ComponentQuestion } from "./contract.ts";
import { findComponent, loadComponent } from "./load-component.ts";

interface DrawnQuestionProps {
  question: ComponentQuestion;
  /** What serves where the tool has no component, or one that fails. */
  children: ComponentChildren;
}

type Drawing = { kind: "asking" } | { kind: "drawn" } | { kind: "plain"; fault?: string };

/** A question as the component of its tool draws it; else in plain. */
export function DrawnQuestion({ question, children }: DrawnQuestionProps) {
  const element = useRef<HTMLDivElement>(null);
  const drawing = useSignal<Drawing>({ kind: "asking" });
  useEffect(() => {
    const closing = new AbortController();
    void draw(question, closing.signal, element, (next) => {
      drawing.value = next;
    });
    return () => closing.abort();
  }, [question.callId]);
  const { value } = drawing;
  if (value.kind === "plain")
    return (
      <>
        <Fault text={value.fault} />
        {children}
      </>
    );
  return (
    <>
      <div class="component" ref={element} />
      {value.kind === "drawn" && (
        <button
          type="button"
          class="small"
          onClick={() => {
            drawing.value = { kind: "plain" };
          }}
        >
          plain form
        </button>
      )}
    </>
  );
}

/** Draws until the signal is aborted. What a component throws is told with the name of its file, and the plain form stands in for it. */
async function draw(
  question: ComponentQuestion,
  signal: AbortSignal,
  place: { readonly current: HTMLElement | null },
  tell: (drawing: Drawing) => void,
): Promise<void> {
  const path = await findComponent(question.tool);
  if (signal.aborted) return;
  if (path === undefined) return tell({ kind: "plain" });
  try {
    const component = await loadComponent(path);
    if (signal.aborted || place.current === null) return;
    tell({ kind: "drawn" });
    const end = await component(question, place.current);
    if (typeof end !== "function") return;
    if (signal.aborted) end();
    else signal.addEventListener("abort", () => end(), { once: true });
  } catch (error) {
    const file = path.replace("/console/", "");
    if (!signal.aborted) tell({ kind: "plain", fault: `${file} cannot be used, so this is the plain form: ${error}` });
  }
}
