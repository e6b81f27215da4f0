import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { askWaiting, inboxMs, waitingForPeople } from "../inbox/waiting-calls.ts";
import { OverviewScreen } from "../overview/overview-screen.tsx";
import { lazily } from "../parts/lazily.tsx";
import { Empty } from "../parts/notice.tsx";
import { linkTo, place } from "../parts/place.ts";
import { Screen } from "../parts/screen.tsx";
import { clockOf } from "../parts/words.ts";
import { hasCallKey, heldKey, refusedKey, unreachableSince } from "../suite/connection.ts";
import { leave } from "../suite/login/login.ts";
import { usePolled } from "../suite/polled.ts";
import { Guarded } from "./guarded.tsx";
import { KeyForm } from "./key-form.tsx";

const RunsScreen = lazily(async () => (await import("../runs/runs-screen.tsx")).RunsScreen);
const RunScreen = lazily(async () => (await import("../runs/run-screen.tsx")).RunScreen);

const OneQuestion = lazily(async () => (await import("../inbox/one-question.tsx")).OneQuestion);

const screens: Readonly<Record<string, { title: string; screen: ComponentType }>> = {
  overview: { title: "Overview", screen: OverviewScreen },
  runs: { title: "Runs", screen: RunsOrRun },
  inbox: { title: "Inbox", screen: lazily(async () => (await import("../inbox/inbox-screen.tsx")).InboxScreen) },
  tools: { title: "Tools", screen: lazily(async () => (await import("../tools/tools-screen.tsx")).ToolsScreen) },
  agents: { title: "Agents", screen: lazily(async () => (await import("../agents/agents-screen.tsx")).AgentsScreen) },
  spaces: { title: "Spaces", screen: lazily(async () => (await import("../spaces/spaces-screen.tsx")).SpacesScreen) },
  audit: { title: "Audit", screen: lazily(async () => (await import("../audit/audit-screen.tsx")).AuditScreen) },
};

function RunsOrRun() {
  return place.value.id === "" ? <RunsScreen /> : <RunScreen />;
}

export function Shell() {
  if (refusedKey.value !== undefined) return <KeyForm />;
  return hasCallKey() ? <OneQuestionPage /> : <Page />;
}

function OneQuestionPage() {
  return (
    <div>
      <Unreachable />
      <Guarded title="A question">
        <OneQuestion />
      </Guarded>
    </div>
  );
}

function Page() {
  const current = place.value.screen;
  const { fault } = usePolled("waiting", askWaiting, inboxMs);
  const Chosen = screens[current]?.screen ?? Unknown;
  const count = waitingForPeople.value.length;
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ""}${screens[current]?.title ?? "toolbus"} · toolbus`;
  }, [count, current]);
  return (
    <div class="page">
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        to the content
      </button>
      <nav aria-label="Screens">
        <span class="brand">toolbus</span>
        {Object.entries(screens).map(([name, { title }]) => (
          <a key={name} href={linkTo(name)} aria-current={name === current ? "page" : undefined}>
            {title}
            {name === "inbox" && count > 0 && <span class="count">{count}</span>}
          </a>
        ))}
        {heldKey() && (
          <button type="button" class="leave" onClick={leave}>
            leave
          </button>
        )}
      </nav>
      <Unreachable waitingFault={fault} />
      <Guarded key={current} title={screens[current]?.title ?? "toolbus"}>
        <Chosen />
      </Guarded>
    </div>
  );
}

function Unreachable({ waitingFault }: { waitingFault?: string | undefined }) {
  const since = unreachableSince.value;
  return (
    <div class="link-state" role="status">
      {since !== undefined &&
        `since ${clockOf(since)} the suite is not reached; what you see is from before. Reconnecting…`}
      {waitingFault && ` What waits is not known: ${waitingFault}`}
    </div>
  );
}

function Unknown() {
  return (
    <Screen title="Not here">
      <Empty>There is no such screen.</Empty>
    </Screen>
  );
}
