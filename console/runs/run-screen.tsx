import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, type RunFork, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Answered } from "../inbox/card/answered.tsx";
import { Cards } from "../inbox/cards.tsx";
import { waitingCalls } from "../inbox/waiting-calls.ts";
import { useClock } from "../parts/clock.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { choose, goTo, linkTo, place } from "../parts/place.ts";
import { Facts, Screen } from "../parts/screen.tsx";
import { usageText } from "../parts/text/usage-text.ts";
import { LongText } from "../parts/text-block.tsx";
import { clockOf, durationOf, wordFrom } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { useFollowed } from "../suite/live.ts";
import { usePolled } from "../suite/polled.ts";
import { Copies } from "./detail/copies.tsx";
import { decisionsOf } from "./detail/decisions.ts";
import { DraftView } from "./detail/draft-view.tsx";
import { ForkForm } from "./detail/fork-form.tsx";
import { SpanDetail } from "./detail/span-detail.tsx";
import { Waterfall } from "./detail/waterfall.tsx";
import { OPENED, openedFile } from "./open-log-file.tsx";
import { RequiredCalls } from "./required-calls.tsx";
import { goingOn, RunBadge, waitingText } from "./states.tsx";
import { followRun, timelineUpTo } from "./timeline/followed-run.ts";
import { logFileFrom, saveFile } from "./timeline/log-file.ts";
import { spentOf, type Timeline } from "./timeline/timeline.ts";

export function RunScreen() {
  const { id } = place.value;
  return id === OPENED ? <OpenedRun /> : <LiveRun key={id} runId={id} />;
}

function OpenedRun() {
  const { name, logs = [] } = openedFile.value ?? {};
  const at = place.value.query.get("log") || "0";
  const events = logs[Number(at)];
  if (!events) return <Screen title="Run">{<Empty>The log is to be opened again: a page keeps none.</Empty>}</Screen>;
  const timeline = timelineUpTo(events, Number.MAX_SAFE_INTEGER);
  return (
    <Screen title={`Run of ${timeline.agent}`} aside={<span class="quiet">from {name}</span>}>
      {logs.length > 1 && (
        <label class="toolbar">
          Run
          <select value={at} onChange={(event) => goTo(linkTo("runs", OPENED, { log: event.currentTarget.value }))}>
            {logs.map(([first], index) => (
              <option key={first?.runId} value={`${index}`}>
                {first?.runId}
              </option>
            ))}
          </select>
        </label>
      )}
      <Asked key={`asked ${at}`} timeline={timeline} />
      <RunView key={at} runId={OPENED} events={events} whole={timeline} nowMs={timeline.lastMs} />
    </Screen>
  );
}

function LiveRun({ runId }: { runId: string }) {
  const { model, fault } = useFollowed(runId, () => followRun(runId));
  const { timeline, events } = model;
  const isOver = !goingOn.includes(timeline.state);
  const isGoing = !isOver && events.length > 0;
  const clockMs = useClock(250, isGoing);
  const nowMs = isGoing ? Math.max(clockMs, timeline.lastMs) : timeline.lastMs;
  const run = { id: runId, state: timeline.state };
  const parkedMs = timeline.spans.findLast(({ kind }) => kind === "waiting")?.startMs;
  return (
    <Screen
      title={timeline.agent ? `Run of ${timeline.agent}` : "Run"}
      aside={
        events.length > 0 && (
          <>
            <RunBadge {...run} />
            <span class="quiet">{waitingText(run, parkedMs)}</span>
          </>
        )
      }
      actions={
        events.length > 0 && (
          <>
            <Copies runId={runId} />
            <ExportButton runId={runId} events={events} />
            {!isOver && <CancelButton runId={runId} />}
          </>
        )
      }
    >
      <Asked timeline={timeline} />
      <Fault text={fault} />
      <Answered of={(call) => call.runId === runId} />
      <Cards title="Waits for" calls={(isGoing && waitingCalls.value?.filter((call) => call.runId === runId)) || []} />
      <RequiredCalls runId={runId} calls={timeline.required} />
      {events.length > 0 && <RunView runId={runId} events={events} whole={timeline} nowMs={nowMs} />}
    </Screen>
  );
}

interface RunViewProps {
  runId: string;
  events: readonly RunEvent[];
  whole: Timeline;
  nowMs: number;
}

function RunView({ runId, events, whole, nowMs }: RunViewProps) {
  const { query } = place.value;
  const at = Math.min(Number(query.get("at") || whole.lastSequence), whole.lastSequence);
  const isPast = at < whole.lastSequence;
  const timeline = isPast ? timelineUpTo(events, at) : whole;
  const isGoing = goingOn.includes(timeline.state);
  const untilMs = isPast ? timeline.lastMs : nowMs;
  const chosen = timeline.spans.find(({ id }) => id === query.get("span"));
  const decisions = usePolled(
    runId,
    async (signal) => (runId === OPENED ? new Map<string, string>() : decisionsOf(runId, signal)),
    goingOn.includes(whole.state) ? 3_000 : 0,
  );
  return (
    <>
      {isPast && (
        <p class="hint">
          An earlier moment: the run as it was at {clockOf(timeline.lastMs)}.{" "}
          <button type="button" class="small" onClick={() => choose({ at: "" })}>
            as it is
          </button>
        </p>
      )}
      <Facts
        of={{
          run: runId === OPENED ? "" : runId,
          session: whole.sessionId && <a href={linkTo("runs", "", { session: whole.sessionId })}>{whole.sessionId}</a>,
          "called by": whole.parent?.runId && (
            <a href={linkTo("runs", whole.parent.runId, { span: whole.parent.callId })}>{whole.parent.runId}</a>
          ),
          "forked from": whole.fork && <ForkedFrom fork={whole.fork} />,
          "started by": whole.principal,
          at: clockOf(timeline.startMs),
          [isGoing ? "so far" : "took"]: durationOf(untilMs - (timeline.startMs ?? untilMs)),
          turns: `${timeline.turnCount}`,
          used: usageText(spentOf(timeline)),
          trace: whole.traceId,
          end: timeline.endReason ? wordFrom(RunEndReason, timeline.endReason) : "",
        }}
      />
      <Fault text={timeline.error} />
      <label class="scrub">
        As it was after event {at} of {whole.lastSequence}
        <input
          type="range"
          min={0}
          max={whole.lastSequence}
          value={at}
          onInput={(event) => {
            const sequence = Number(event.currentTarget.value);
            choose({ at: sequence >= whole.lastSequence ? "" : `${sequence}` });
          }}
        />
      </label>
      <div class="run">
        <Waterfall
          timeline={timeline}
          nowMs={untilMs}
          chosen={chosen?.id ?? ""}
          onChoose={(span) => choose({ span: span === chosen?.id ? "" : span })}
        />
        <div class="run-side">
          {chosen && (
            <SpanDetail runId={runId} span={chosen} nowMs={untilMs} decision={decisions.value?.get(chosen.id) ?? ""} />
          )}
          {!chosen && timeline.draft && <DraftView draft={timeline.draft} />}
          {!chosen && !timeline.draft && <Answer timeline={timeline} />}
          {runId !== OPENED && <ForkForm runId={runId} atSequence={chosen?.sequence ?? timeline.lastSequence} />}
        </div>
      </div>
    </>
  );
}

/** Characters of what was asked that stand at the head of a run. */
const shownCharacters = 300;

function Asked({ timeline: { askedText } }: { timeline: Timeline }) {
  if (askedText === "") return null;
  const isLong = askedText.length > shownCharacters;
  return <p class="asked">{isLong ? `${askedText.slice(0, shownCharacters)}…` : askedText}</p>;
}

function ForkedFrom({ fork: { runId, atSequence } }: { fork: RunFork }) {
  return (
    <>
      <a href={linkTo("runs", runId)}>{runId}</a> after event {atSequence}
    </>
  );
}

function Answer({ timeline: { outputText, error, state } }: { timeline: Timeline }) {
  if (outputText === "") return <p class="quiet">Choose a line to see what it was given and what came of it.</p>;
  return (
    <div class="detail">
      <Fault text={error} />
      <h2>{state === RunState.COMPLETED ? "answer" : "last said"}</h2>
      <LongText text={outputText} />
    </div>
  );
}

function CancelButton({ runId }: { runId: string }) {
  const { isBusy, fault, run } = useActing();
  const cancel = () => run(() => clientOf(RunService).cancelRun({ runId, reason: "canceled in the console" }));
  return (
    <>
      <button type="button" disabled={isBusy} onClick={cancel}>
        cancel
      </button>
      <Fault text={fault} />
    </>
  );
}

function ExportButton({ runId, events }: { runId: string; events: readonly RunEvent[] }) {
  const save = () => saveFile(`${runId}.json`, JSON.stringify(logFileFrom(events), undefined, 1));
  return (
    <button type="button" onClick={save}>
      export
    </button>
  );
}
