import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** The time, which goes on every so many ms while it is asked to; its component is rendered again then. */
export function useClock(everyMs: number, isGoing = true): number {
  const now = useSignal(Date.now());
  useEffect(() => {
    if (!isGoing) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, isGoing, now]);
  return now.value;
}
