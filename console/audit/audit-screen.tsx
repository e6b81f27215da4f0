import { type AuditEvent, AuditKind, AuditKindSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { Badge, Empty, Fault, type Tone } from "../parts/notice.tsx";
import { choose, linkTo, place } from "../parts/place.ts";
import { Rows } from "../parts/rows.tsx";
import { Facts, Screen } from "../parts/screen.tsx";
import { clockOf, msOf, wordFrom } from "../parts/words.ts";
import { callInRun } from "../runs/detail/decisions.ts";
import { useFollowed } from "../suite/live.ts";
import { followAudit } from "./followed-audit.ts";

const tones: Readonly<Record<number, Tone>> = {
  [AuditKind.PERMITTED]: "good",
  [AuditKind.BLOCKED]: "bad",
  [AuditKind.UNAVAILABLE]: "bad",
  [AuditKind.TIMED_OUT]: "bad",
  [AuditKind.SWITCH_TIMED_OUT]: "bad",
  [AuditKind.WATCHER_LOST]: "wait",
  [AuditKind.TOOL_CHANGED]: "wait",
};

const kinds = AuditKindSchema.values.map(({ number }) => number as AuditKind).filter((kind) => kind > 0);

/** What was decided, and what changed, as it happens; each decision leads to its call. */
export function AuditScreen() {
  const { query } = place.value;
  const kind = kinds.find((known) => `${known}` === query.get("kind"));
  const words = (query.get("words") ?? "").toLowerCase();
  const { model, fault } = useFollowed(`${kind}`, () => followAudit(kind ? [kind] : []));
  const chosen = model.events.find(({ sequence }) => `${sequence}` === query.get("event"));
  const shown = words === "" ? model.events : model.events.filter((event) => textOf(event).includes(words));
  return (
    <Screen title="Audit" aside={<span class="quiet">{shown.length.toLocaleString()}</span>}>
      <div class="toolbar">
        <label>
          Kind{" "}
          <select value={`${kind ?? 0}`} onChange={(event) => choose({ kind: event.currentTarget.value })}>
            <option value="0">all</option>
            {kinds.map((value) => (
              <option key={value} value={`${value}`}>
                {wordFrom(AuditKind, value)}
              </option>
            ))}
          </select>
        </label>
        <label class="wide">
          Words{" "}
          <input
            type="search"
            value={query.get("words") ?? ""}
            onInput={(event) => choose({ words: event.currentTarget.value })}
          />
        </label>
      </div>
      <Fault text={fault} />
      {model.isCut && (
        <p class="quiet">
          The latest are shown; <code>toolbus audit</code> shows older ones, too.
        </p>
      )}
      {!model.hasBegun && !fault && <p class="quiet">The trail is being listed …</p>}
      {model.hasBegun && shown.length === 0 && <Empty>Nothing of this kind is stored.</Empty>}
      <div class="two">
        <Rows
          label="Audit trail, latest last"
          rows={shown}
          rowHeight={40}
          isFollowing
          keyOf={({ sequence }) => `${sequence}`}
          render={(event) => <AuditLine event={event} isChosen={event === chosen} />}
        />
        <div class="run-side">
          {chosen ? <AuditDetail event={chosen} /> : <p class="quiet">Choose a decision to see all of it.</p>}
        </div>
      </div>
    </Screen>
  );
}

function textOf({ agent, sessionId, runId, tool, rule, message, callId, service, principal }: AuditEvent): string {
  return [agent, sessionId, runId, tool, rule, message, callId, service, principal].join(" ").toLowerCase();
}

function AuditLine({ event, isChosen }: { event: AuditEvent; isChosen: boolean }) {
  const { sequence, createTime, kind, agent, tool, rule, message } = event;
  return (
    <button type="button" class="audit-row" aria-pressed={isChosen} onClick={() => choose({ event: `${sequence}` })}>
      <time class="quiet">{clockOf(msOf(createTime))}</time>
      <Badge tone={tones[kind] ?? "quiet"}>{wordFrom(AuditKind, kind)}</Badge>
      <strong>{tool || agent}</strong>
      {tool && agent && <span class="quiet wide-only">{agent}</span>}
      <span class="grow quiet clip">{rule || message}</span>
    </button>
  );
}

function AuditDetail({ event }: { event: AuditEvent }) {
  const { createTime, kind, agent, tool, rule, message, runId, callId, sessionId, service, principal } = event;
  return (
    <div class="detail">
      <h2>
        {wordFrom(AuditKind, kind)} {tool}
      </h2>
      <p>{message}</p>
      <Facts
        of={{
          rule,
          at: new Date(msOf(createTime) ?? 0).toLocaleString(undefined, { hour12: false }),
          agent: agent && <a href={linkTo("agents", agent)}>{agent}</a>,
          tool,
          call: runId && callId && <a href={linkTo("runs", runId, { span: callInRun(runId, callId) })}>{callId}</a>,
          run: runId && <a href={linkTo("runs", runId)}>{runId}</a>,
          session: sessionId && <a href={linkTo("runs", "", { session: sessionId })}>{sessionId}</a>,
          for: principal,
          "decided by": service,
        }}
      />
    </div>
  );
}
