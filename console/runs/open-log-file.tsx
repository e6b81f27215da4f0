import { useSignal } from "@preact/signals";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { goTo, linkTo } from "../parts/place.ts";
import { personalSignal } from "../suite/connection.ts";
import { eventsFromFile } from "./timeline/log-file.ts";

/** The run's log that was opened last, for as long as the page is. */
export const openedLog = personalSignal<{ readonly name: string; readonly events: readonly RunEvent[] } | undefined>(
  undefined,
);

/** The id that stands for it in addresses; no run's has a ~. */
export const OPENED = "~file";

/** Opens a log that was exported; nothing of it is sent anywhere. */
export function OpenLogFile() {
  const fault = useSignal<string>();
  const open = async (file: File | undefined) => {
    if (!file) return;
    try {
      openedLog.value = { name: file.name, events: eventsFromFile(await file.text()) };
      fault.value = undefined;
      goTo(linkTo("runs", OPENED));
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  return (
    <>
      <Fault text={fault.value} />
      <label class="button">
        open a log…
        <input
          type="file"
          accept=".json,application/json"
          class="hidden"
          onChange={(event) => open(event.currentTarget.files?.[0])}
        />
      </label>
    </>
  );
}
