import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type Run, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { choose, linkTo, place } from "../parts/place.ts";
import { Rows } from "../parts/rows.tsx";
import { Screen } from "../parts/screen.tsx";
import { clockOf, counted, durationOf, msOf, usageText, wordFrom } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";
import { listRuns, matches } from "./listed-runs.ts";
import { OpenLogFile } from "./open-log-file.tsx";
import { goingOn, RunBadge } from "./states.tsx";

const stateFilters: Readonly<Record<string, readonly RunState[]>> = {
  all: [],
  "going on": goingOn,
  waiting: [RunState.REQUIRES_ACTION],
  completed: [RunState.COMPLETED],
  incomplete: [RunState.INCOMPLETE],
  failed: [RunState.FAILED],
  canceled: [RunState.CANCELED],
};

/** How often the latest runs are asked for, in ms: the contract has no watch of all runs. */
const refreshMs = 1_500;

export function RunsScreen() {
  const { query } = place.value;
  const state = query.get("state") ?? "all";
  const sessionId = query.get("session") ?? "";
  const words = query.get("words") ?? "";
  const listed = useMemo(() => listRuns({ states: stateFilters[state] ?? [], sessionId }), [state, sessionId]);
  const drawn = useSignal(0);
  const { value, fault, again } = usePolled(
    `${state} ${sessionId}`,
    async (signal) => {
      await listed.refresh(signal);
      return ++drawn.value;
    },
    refreshMs,
  );
  drawn.value; // read: older pages come between
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const shown = words === "" ? listed.runs : listed.runs.filter((run) => matches(run, words));
  const more = () => {
    const before = listed.runs.length;
    void listed.more().then(
      () => {
        if (listed.runs.length > before) drawn.value += 1;
      },
      () => {}, // asked for again when one scrolls; the next refresh tells what is wrong
    );
  };
  const toggle = (id: string) => {
    const next = new Set(chosen.value);
    if (!next.delete(id)) next.add(id);
    chosen.value = next;
  };
  return (
    <Screen
      title="Runs"
      aside={
        <span class="quiet">
          {shown.length.toLocaleString()}
          {listed.isWhole ? "" : "+"}
        </span>
      }
      actions={<OpenLogFile />}
    >
      <div class="toolbar">
        <label>
          State{" "}
          <select value={state} onChange={(event) => choose({ state: event.currentTarget.value })}>
            {Object.keys(stateFilters).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Session{" "}
          <input
            type="search"
            value={sessionId}
            pattern="[a-zA-Z0-9_\-]{0,64}"
            onChange={(event) => event.currentTarget.checkValidity() && choose({ session: event.currentTarget.value })}
          />
        </label>
        <label class="wide">
          Words{" "}
          <input
            type="search"
            placeholder="agent, id, error or answer, in what is listed"
            value={words}
            onInput={(event) => choose({ words: event.currentTarget.value })}
          />
        </label>
        <CancelChosen runs={shown.filter(({ id }) => chosen.value.has(id))} onDone={again} />
      </div>
      <Fault text={fault} />
      {value !== undefined && shown.length === 0 && (
        <Empty>
          No runs here. Start one: <code>toolbus run AGENT "…"</code>
        </Empty>
      )}
      <Rows
        label="Runs, latest first"
        rows={shown}
        rowHeight={44}
        keyOf={(run) => run.id}
        onEnd={more}
        render={(run) => <RunRow run={run} isChosen={chosen.value.has(run.id)} onToggle={() => toggle(run.id)} />}
      />
    </Screen>
  );
}

function RunRow({ run, isChosen, onToggle }: { run: Run; isChosen: boolean; onToggle: () => void }) {
  const start = msOf(run.createTime) ?? 0;
  const end = msOf(run.endTime);
  const said = run.error || run.outputText;
  return (
    <div class="run-row">
      <input type="checkbox" aria-label={`choose run ${run.id}`} checked={isChosen} onChange={onToggle} />
      <a href={linkTo("runs", run.id)}>
        <span class="run-state">
          <RunBadge state={run.state} />
        </span>
        <strong>{run.agent}</strong>
        <span class="grow quiet clip">{said || (run.endReason ? wordFrom(RunEndReason, run.endReason) : run.id)}</span>
        <span class="quiet cell">{run.turnCount > 0 ? counted(run.turnCount, "turn") : ""}</span>
        <span class="quiet cell wide-only">{usageText(run.usage)}</span>
        <span class="quiet cell">{durationOf((end ?? Date.now()) - start)}</span>
        <time class="quiet cell">{clockOf(start)}</time>
      </a>
    </div>
  );
}

function CancelChosen({ runs, onDone }: { runs: readonly Run[]; onDone: () => void }) {
  const { isBusy, fault, run: act } = useActing();
  const open = runs.filter(({ state }) => goingOn.includes(state));
  if (open.length === 0) return null;
  const cancel = async () => {
    const service = clientOf(RunService);
    const reason = "canceled in the console";
    await act(() => Promise.all(open.map(({ id }) => service.cancelRun({ runId: id, reason }))));
    onDone();
  };
  return (
    <>
      <button type="button" disabled={isBusy} onClick={cancel}>
        cancel {open.length} {open.length === 1 ? "run" : "runs"}
      </button>
      <Fault text={fault} />
    </>
  );
}
