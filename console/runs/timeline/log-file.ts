// Logs of runs as a file: what was exported is looked at without the suite that it is of.

import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";

const FORMAT = "toolbus.run-log.v1";

/** What the file of a run's log holds, as JSON. */
export function logFileFrom(events: readonly RunEvent[]): object {
  return { format: FORMAT, events: events.map((event) => toJson(RunEventSchema, event)) };
}

/** Has the browser save a file. */
export function saveFile(name: string, ...parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type: "application/json" }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}

/** The logs of a file, each of which begins on a line of its own. Throws an error that says what is wrong with it. */
export function logsFromFile(text: string): RunEvent[][] {
  return text
    .trim()
    .split(/\n(?=\{)/)
    .map(eventsFromText);
}

function eventsFromText(text: string): RunEvent[] {
  let file: { format?: unknown; events?: unknown } | null;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("this file is no JSON");
  }
  if (file?.format !== FORMAT || !Array.isArray(file.events)) {
    throw new Error(`this file is no log of a run: its "format" would be ${FORMAT}`);
  }
  return file.events.map((event: JsonValue, index) => {
    try {
      return fromJson(RunEventSchema, event, { ignoreUnknownFields: true });
    } catch (error) {
      throw new Error(`event ${index + 1} of this file cannot be read: ${(error as Error).message}`);
    }
  });
}
