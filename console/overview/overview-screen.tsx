import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { inboxMs, listWaitingCalls } from "../inbox/waiting-calls.ts";
import { useClock } from "../parts/clock.ts";
import { Badge, Empty, Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { Screen, Section } from "../parts/screen.tsx";
import { clockOf, durationOf, msOf } from "../parts/words.ts";
import { RunBadge } from "../runs/states.tsx";
import { clientOf } from "../suite/connection.ts";
import { useFollowed } from "../suite/live.ts";
import { usePolled } from "../suite/polled.ts";
import { countedRuns, followOverview } from "./followed-overview.ts";

/** What goes on, what waits, what failed, and whether the suite is well. */
export function OverviewScreen() {
  const { model, fault } = useFollowed("overview", followOverview);
  const waiting = usePolled(
    "waiting",
    async (signal) => (await listWaitingCalls(signal)).filter(isForPeople).length,
    inboxMs,
  );
  useClock(1_000);
  if (!model.hasBegun) return <Screen title="Overview">{<Fault text={fault} />}</Screen>;
  const [open, failed] = [[...model.openRuns.values()], [...model.failed.values()].reverse()];
  const inState = (state: RunState) => open.filter((run) => run.state === state).length;
  return (
    <Screen title="Overview">
      <Fault text={fault ?? waiting.fault} />
      <div class="figures">
        <Figure
          label="in progress"
          value={inState(RunState.IN_PROGRESS)}
          href={linkTo("runs", "", { state: "going on" })}
        />
        <Figure label="queued" value={inState(RunState.QUEUED)} href={linkTo("runs", "", { state: "going on" })} />
        <Figure label="wait for people" value={waiting.value ?? 0} href={linkTo("inbox")} />
        <Figure
          label="failed, an hour"
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
      <Section title="Services">
        <Services />
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
          <RunBadge state={run.state} />
          <a class="grow clip" href={linkTo("runs", run.id)}>
            <strong>{run.agent}</strong> <span class="quiet">{run.error || run.id}</span>
          </a>
          <span class="quiet">{run.endTime ? clockOf(msOf(run.endTime)) : durationOf(Date.now() - timeOf(run))}</span>
        </li>
      ))}
    </ul>
  );
}

function Services() {
  const { value, fault } = usePolled(
    "health",
    async (signal) => (await clientOf(Health).list({}, { signal })).statuses,
    5_000,
  );
  const names = Object.keys(value ?? {})
    .filter((name) => name !== "")
    .sort();
  return (
    <>
      <Fault text={fault} />
      <ul class="list services">
        {names.map((name) => {
          const isUp = value?.[name]?.status === ServingStatus.SERVING;
          return (
            <li key={name}>
              <Badge tone={isUp ? "good" : "bad"}>{isUp ? "serving" : "not there"}</Badge> {name}
            </li>
          );
        })}
      </ul>
    </>
  );
}
