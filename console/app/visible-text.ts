import { options } from "preact";
import { visibleText } from "#runtime/content/visible/visible.ts";

/** Attributes that people read. */
const READ = ["title", "aria-label"];

/**
 * The one place where text becomes part of the page: whichever model, tool, person or server wrote it, a control character stands
 * there as a sign of its own, so that no text hides or turns round what stands beside it (SEC-7).
 */
export function showControls(): void {
  const { vnode: next } = options;
  options.vnode = (vnode) => {
    const { type, props } = vnode as { type: unknown; props: string | Record<string, unknown> };
    if (typeof props === "string") Object.assign(vnode, { props: visibleText(props) });
    else if (typeof type === "string") for (const name of READ) showIn(props, name);
    next?.(vnode);
  };
}

function showIn(props: Record<string, unknown>, name: string): void {
  const text = props[name];
  if (typeof text === "string") props[name] = visibleText(text);
}
