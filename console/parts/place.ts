import { computed, signal } from "@preact/signals";

/** Where the page stands: `#/runs/RUN?turn=2` is the screen `runs`, the thing `RUN`, and what is chosen there. */
export interface Place {
  readonly screen: string;
  readonly id: string;
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export const place = computed(() => placeFrom(hash.value));

function placeFrom(text: string): Place {
  const [path = "", query = ""] = text.replace(/^#\/?/, "").split("?", 2);
  const [screen = "", ...rest] = path.split("/");
  return { screen: screen || "overview", id: decodeOr(rest.join("/")), query: new URLSearchParams(query) };
}

/** An address that somebody cut off is no reason for an empty page. */
function decodeOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function linkTo(screen: string, id = "", query: Readonly<Record<string, string>> = {}): string {
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  const search = filled.length === 0 ? "" : `?${new URLSearchParams(filled)}`;
  return `#/${screen}${id === "" ? "" : `/${encodeURIComponent(id)}`}${search}`;
}

/** Whether the page shows this already. */
export function isAt(screen: string, id: string): boolean {
  return place.value.screen === screen && place.value.id === id;
}

export function goTo(link: string): void {
  location.hash = link;
}

/** Changes what is chosen on this screen, without a step back for each. */
export function choose(changes: Readonly<Record<string, string>>): void {
  const { screen, id, query } = place.value;
  replaceAddress(linkTo(screen, id, { ...Object.fromEntries(query), ...changes }));
}

/** Stands elsewhere, without a step back to where the page stood. */
export function replaceAddress(address: string): void {
  history.replaceState(undefined, "", address);
  hash.value = location.hash;
}
