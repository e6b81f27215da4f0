import type { ComponentChildren } from "preact";
import { useErrorBoundary, useRef } from "preact/hooks";
import { Fault } from "../parts/notice.tsx";
import { type Place, place } from "../parts/place.ts";
import { Screen } from "../parts/screen.tsx";

/** A screen, or what it threw in place of it until the page stands elsewhere: the frame and the other screens stay. */
export function Guarded({ title, children }: { title: string; children: ComponentChildren }) {
  const brokenAt = useRef<Place>(undefined);
  const [error] = useErrorBoundary((thrown) => {
    brokenAt.current = place.value;
    console.error(thrown);
  });
  if (error === undefined || brokenAt.current !== place.value) return <>{children}</>;
  return (
    <Screen title={title}>
      <Fault text={`This screen cannot be drawn: ${error instanceof Error ? error.message : error}`} />
      <button type="button" onClick={() => location.reload()}>
        reload the page
      </button>
    </Screen>
  );
}
