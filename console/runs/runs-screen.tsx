import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Run, RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { randomName } from "../../sdk/typescript/client/connection.ts";
import { useClock } from "../parts/clock.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { choose, linkTo, place } from "../parts/place.ts";
import { leftAt, Rows } from "../parts/rows.tsx";
import { Screen } from "../parts/screen.tsx";
import { usageText } from "../parts/text/usage-text.ts";
import { clockOf, counted, durationOf, msOf, wordFrom } from "../parts/words.ts";
import { useFollowed } from "../suite/live.ts";
import { ChosenRuns } from "./chosen-runs.tsx";
import { listRuns, matches } from "./listed-runs.ts";
import { OpenLogFile } from "./open-log-file.tsx";
import { filterFrom, RunFilters } from "./run-filters.tsx";
import { goingOn, RunBadge, waitingText } from "./states.tsx";

/** Of a run, in pixels. */
const rowHeight = 44;

export function RunsScreen() {
  const { query } = place.value;
  const words = query.get("words") ?? "";
  const filter = filterFrom(query);
  const filterKey = JSON.stringify(filter);
  const { model: listed, fault } = useFollowed(filterKey, () => listRuns(filter, Math.ceil(leftAt() / rowHeight) + 50));
  const drawn = useSignal(0);
  drawn.value; // read: older pages come between
  const asksAgain = useRef<ReturnType<typeof setTimeout>>(undefined);
  useClock(
    1_000,
    listed.runs.some(({ state }) => goingOn.includes(state)),
  );
  const chosen = useSignal<ReadonlyMap<string, string>>(new Map());
  const shown = words === "" ? listed.runs : listed.runs.filter((run) => matches(run, words));
  const more = () => {
    void listed.more().then(
      (isMore) => {
        if (isMore) drawn.value += 1;
      },
      () => {
        clearTimeout(asksAgain.current);
        asksAgain.current = setTimeout(() => {
          drawn.value += 1; // asks for it again; the stream tells what is wrong
        }, 2_000);
      },
    );
  };
  const toggle = (id: string) => {
    const next = new Map(chosen.value);
    if (!next.delete(id)) next.set(id, randomName());
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
        <RunFilters query={query} />
        <label class="wide">
          Words{" "}
          <input
            type="search"
            placeholder="what was asked, answer, error, agent, id"
            value={words}
            onInput={(event) => choose({ words: event.currentTarget.value })}
          />
        </label>
      </div>
      <ChosenRuns
        runs={shown.filter(({ id }) => chosen.value.has(id))}
        keys={chosen.value}
        onDone={(id) => {
          const next = new Map(chosen.value);
          next.delete(id);
          chosen.value = next;
        }}
      />
      <Fault text={fault} />
      {!listed.isWhole && shown.length === 0 && !fault && <p class="quiet">The runs are being looked through …</p>}
      {listed.isWhole && shown.length === 0 && (
        <Empty>
          No runs here{" "}
          {query.size > 0 ? (
            <>
              fit this choice. See <a href={linkTo("runs")}>all runs</a>.
            </>
          ) : (
            <>
              yet. Start one: <code>toolbus run AGENT "…"</code>
            </>
          )}
        </Empty>
      )}
      <Rows
        label="Runs, latest first"
        rows={shown}
        rowHeight={rowHeight}
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
  const said = run.error || run.outputText || waitingText(run);
  return (
    <div class="run-row">
      <input type="checkbox" aria-label={`choose run ${run.id}`} checked={isChosen} onChange={onToggle} />
      <a href={linkTo("runs", run.id)}>
        <span class="run-state">
          <RunBadge id={run.id} state={run.state} />
        </span>
        <strong>{run.agent}</strong>
        <span class="grow clip wide-only">{run.inputText}</span>
        <span class="grow quiet clip">{said || (run.endReason ? wordFrom(RunEndReason, run.endReason) : run.id)}</span>
        <span class="quiet cell">{run.turnCount > 0 ? counted(run.turnCount, "turn") : ""}</span>
        <span class="quiet cell usage wide-only">{usageText(run.usage)}</span>
        <span class="quiet cell">{durationOf((end ?? Date.now()) - start)}</span>
        <time class="quiet cell">{clockOf(start)}</time>
      </a>
    </div>
  );
}
