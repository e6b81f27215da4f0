import { useSignal } from "@preact/signals";
import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { Badge, Empty, Fault } from "../parts/notice.tsx";
import { linkTo } from "../parts/place.ts";
import { Rows } from "../parts/rows.tsx";
import { Section } from "../parts/screen.tsx";
import { clockOf, msOf, wordFrom } from "../parts/words.ts";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

/** How often sessions are listed, in ms: often enough to see a switch go. */
const refreshMs = 1_500;

/** Sessions with the agent that each has, which may be switched. */
export function Sessions({ agents }: { agents: readonly string[] }) {
  const { value, fault, again } = usePolled("sessions", listSessions, refreshMs);
  const isOpen = ({ state }: Session) => state !== SessionState.CLOSED;
  const sessions = [...(value?.sessions ?? [])].filter(isOpen).sort((one, other) => timeOf(other) - timeOf(one));
  return (
    <Section title="Open sessions">
      <Fault text={fault} />
      {value && sessions.length === 0 && <Empty>No session is open: a run opens one.</Empty>}
      <Rows
        label="Open sessions, latest first"
        rows={sessions}
        rowHeight={48}
        narrowRowHeight={124}
        keyOf={({ id }) => id}
        render={(session) => <SessionLine session={session} agents={agents} onDone={again} />}
      />
      {value?.hasMore && <p class="quiet">The first 1,000 are listed.</p>}
    </Section>
  );
}

async function listSessions(signal: AbortSignal): Promise<{ sessions: readonly Session[]; hasMore: boolean }> {
  const { sessions, nextPageToken } = await clientOf(SessionService).listSessions({ pageSize: 1_000 }, { signal });
  return { sessions, hasMore: nextPageToken !== "" };
}

const timeOf = (session: Session) => msOf(session.createTime) ?? 0;

interface SessionLineProps {
  session: Session;
  agents: readonly string[];
  onDone: () => void;
}

function SessionLine({ session, agents, onDone }: SessionLineProps) {
  const { id, agent, state, nextAgent, switchCount } = session;
  const { isBusy, fault, run } = useActing();
  const target = useSignal("");
  const isActive = state === SessionState.ACTIVE;
  const act = (ask: () => Promise<unknown>) => run(ask).then(onDone);
  return (
    <div class="session-row">
      <Badge tone={isActive ? "good" : "busy"}>{wordFrom(SessionState, state)}</Badge>
      <a class="grow clip" href={linkTo("runs", "", { session: id })}>
        {id}
      </a>
      <span class="clip">
        {agent}
        {nextAgent && ` → ${nextAgent}`}
      </span>
      <span class="quiet">
        since {clockOf(timeOf(session))}
        {switchCount > 0 && ` · switched ${switchCount} times`}
      </span>
      <select
        aria-label={`switch session ${id} to`}
        value={target.value}
        onChange={(event) => {
          target.value = event.currentTarget.value;
        }}
      >
        <option value="">switch to…</option>
        {agents
          .filter((name) => name !== agent)
          .map((name) => (
            <option key={name}>{name}</option>
          ))}
      </select>
      <button
        type="button"
        disabled={isBusy || target.value === ""}
        onClick={() => act(() => clientOf(SessionService).switchAgent({ sessionId: id, agent: target.value }))}
      >
        switch
      </button>
      <button
        type="button"
        disabled={isBusy}
        onClick={() => act(() => clientOf(SessionService).closeSession({ sessionId: id }))}
      >
        close
      </button>
      <Fault text={fault} />
    </div>
  );
}
