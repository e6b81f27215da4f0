import { useSignal } from "@preact/signals";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { goTo, linkTo } from "../parts/place.ts";
import { personalSignal } from "../suite/connection.ts";
import { logsFromFile } from "./timeline/log-file.ts";

interface OpenedFile {
  readonly name: string;
  /** Events of each run. */
  readonly logs: readonly (readonly RunEvent[])[];
}

/** The file of logs that was opened last, for as long as the page is. */
export const openedFile = personalSignal<OpenedFile | undefined>(undefined);

/** The id that stands for it in addresses; no run's has a ~. */
export const OPENED = "~file";

/** Opens logs that were exported; nothing of it is sent anywhere. */
export function OpenLogFile() {
  const fault = useSignal<string>();
  const open = async (file: File | undefined) => {
    if (!file) return;
    try {
      openedFile.value = { name: file.name, logs: logsFromFile(await file.text()) };
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
          accept=".json,.jsonl,application/json"
          class="hidden"
          onChange={(event) => open(event.currentTarget.files?.[0])}
        />
      </label>
    </>
  );
}
