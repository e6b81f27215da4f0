import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { waitingForPeople } from "../inbox/waiting-calls.ts";
import { useClock } from "../parts/clock.ts";
import { lazily } from "../parts/lazily.tsx";
import { Empty, Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { Screen, Section } from "../parts/screen.tsx";
import { clockOf, durationOf, msOf } from "../parts/words.ts";
import { RunBadge, waitingText, waitsSinceMs } from "../runs/states.tsx";
import { useFollowed } from "../suite/live.ts";
import { countedRuns, followOverview } from "./followed-overview.ts";
import { Services } from "./suite-health.tsx";

const ServerCount = lazily(async () => (await import("../tools/server-count.tsx")).ServerCount);

/** What goes on, what waits, what failed, and whether the suite is well. */
export function OverviewScreen() {
  const { model, fault } = useFollowed("overview", followOverview);
  useClock(1_000);
  if (!model.hasBegun)
    return (
      <Screen title="Overview">
        {fault ? <Fault text={fault} /> : <p class="quiet">The runs are being listed …</p>}
      </Screen>
    );
  const [open, failed] = [[...model.openRuns.values()], [...model.failed.values()].reverse()];
  const inState = (state: RunState) =>
    open.filter((run) => run.state === state && waitsSinceMs(run) === undefined).length;
  return (
    <Screen title="Overview">
      <Fault text={fault} />
      <div class="figures">
        <Figure
          label="in progress"
          value={inState(RunState.IN_PROGRESS)}
          href={linkTo("runs", "", { state: "going on" })}
        />
        <Figure label="queued" value={inState(RunState.QUEUED)} href={linkTo("runs", "", { state: "going on" })} />
        <Figure label="wait for people" value={waitingForPeople.value.length} href={linkTo("inbox")} />
        <Figure
          label="wait for clients"
          value={inState(RunState.REQUIRES_ACTION)}
          href={linkTo("runs", "", { state: "waits for its client" })}
        />
        <Figure
          label="failed in the last hour"
          value={failed.filter(isOfLastHour).length}
          href={linkTo("runs", "", { state: "failed" })}
        />
      </div>
      <Section title="Longest in progress">
        <RunLines runs={open.sort((one, other) => timeOf(one) - timeOf(other)).slice(0, 8)} none="Nothing runs." />
      </Section>
      <Section title="Failed last">
        <RunLines runs={failed.slice(0, 8)} none="No run that is stored has failed." />
      </Section>
      <Section title="The suite">
        <div class="toolbar">
          <Services />
          <ServerCount />
        </div>
      </Section>
    </Screen>
  );
}

const timeOf = (run: Run) => msOf(run.createTime) ?? 0;
const isOfLastHour = (run: Run) => Date.now() - (msOf(run.endTime) ?? 0) < 3_600_000;

function Figure({ label, value, href }: { label: string; value: number; href: string }) {
  return (
    <a class="figure" href={href}>
      <strong>
        {value.toLocaleString()}
        {value >= countedRuns && "+"}
      </strong>
      <span>{label}</span>
    </a>
  );
}

function RunLines({ runs, none }: { runs: readonly Run[]; none: string }) {
  if (runs.length === 0) return <Empty>{none}</Empty>;
  return (
    <ul class="list">
      {runs.map((run) => (
        <li key={run.id}>
          <RunBadge id={run.id} state={run.state} />
          <a class="grow clip" href={linkTo("runs", run.id)}>
            <strong>{run.agent}</strong>{" "}
            <span class="quiet">
              {run.error || [waitingText(run), run.inputText].filter(Boolean).join(" · ") || run.id}
            </span>
          </a>
          <span class="quiet">{run.endTime ? clockOf(msOf(run.endTime)) : durationOf(Date.now() - timeOf(run))}</span>
        </li>
      ))}
    </ul>
  );
}
