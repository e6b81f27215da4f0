import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { Fault } from "./notice.tsx";

/** A screen whose code is fetched when it is first shown. */
export function lazily(load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<{ readonly screen: ComponentType }>();
  const isMissing = signal(false);
  let isAsked = false;

  async function fetchOnce(): Promise<void> {
    if (isAsked) return;
    isAsked = true;
    try {
      loaded.value = { screen: await load() };
      isMissing.value = false;
    } catch {
      isMissing.value = true;
      isAsked = false;
    }
  }

  return function Lazily() {
    void fetchOnce();
    if (loaded.value) return <loaded.value.screen />;
    return isMissing.value ? <Fault text="This screen could not be fetched: reload the page." /> : null;
  };
}
