import type { Run } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { counted } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { goingOn } from "./states.tsx";
import { logFileFrom, saveFile } from "./timeline/log-file.ts";
import { readLog } from "./timeline/read-log.ts";

interface ChosenRunsProps {
  runs: readonly Run[];
  /** Of each choice, by run: under its key, what was asked and not answered is done once. */
  keys: ReadonlyMap<string, string>;
  onDone: (runId: string) => void;
}

/** What is done with many runs at once. Where one of them is refused, the rest is done all the same, and it stays chosen. */
export function ChosenRuns({ runs, keys, onDone }: ChosenRunsProps) {
  const { isBusy, fault, run: act } = useActing();
  if (runs.length === 0) return null;
  const open = runs.filter(({ state }) => goingOn.includes(state));
  const each = (chosen: readonly Run[], doIt: (run: Run) => Promise<unknown>) => () =>
    act(async () => {
      const done = await Promise.allSettled(chosen.map((run) => doIt(run).then(() => onDone(run.id))));
      const refused = done.find((result) => result.status === "rejected");
      if (refused) throw refused.reason;
    });
  const service = clientOf(RunService);
  const cancel = each(open, ({ id }) => service.cancelRun({ runId: id, reason: "canceled in the console" }));
  const again = each(runs, ({ id }) =>
    service.forkRun({ runId: id, atSequence: 0, idempotencyKey: keys.get(id) ?? "" }),
  );
  const save = () =>
    act(async () => {
      const lines: string[] = [];
      for (const run of runs) lines.push(JSON.stringify(logFileFrom(await readLog(run))));
      saveFile("runs.jsonl", lines.join("\n"));
    });
  return (
    <section class="toolbar" aria-label="what to do with the chosen runs">
      <strong>{counted(runs.length, "run")} chosen</strong>
      {open.length > 0 && (
        <button type="button" disabled={isBusy} onClick={cancel}>
          cancel {open.length} {open.length === 1 ? "run" : "runs"}
        </button>
      )}
      <button
        type="button"
        disabled={isBusy}
        title="Each is run again from its input, in a session of its own"
        onClick={again}
      >
        run again
      </button>
      <button type="button" disabled={isBusy} title="A line for each run's log, as JSON" onClick={save}>
        export
      </button>
      <Fault text={fault} />
    </section>
  );
}
