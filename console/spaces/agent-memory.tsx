import { useSignal } from "@preact/signals";
import { type MemoryEntry, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { Fault } from "../parts/notice.tsx";
import { clockOf, msOf } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

/** Of whom: an agent keeps them by session. */
export interface Keeper {
  readonly sessionId: string;
  readonly agent: string;
}

const refreshMs = 5_000;
const titles: readonly [MemoryKind, string][] = [
  [MemoryKind.GOAL, "Goals"],
  [MemoryKind.PLAN, "Plans"],
  [MemoryKind.MEMORY, "Memory"],
];

/** Goals, plans and memory of an agent in a session; asked for while they are looked at. */
export function AgentMemory({ name, keeper }: { name: string; keeper: Keeper }) {
  const isOpen = useSignal(false);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Goals, plans and memory of {name}</summary>
      {isOpen.value && <Entries {...keeper} />}
    </details>
  );
}

function Entries({ sessionId, agent }: Keeper) {
  const { value, fault } = usePolled(
    `${sessionId} ${agent}`,
    async (signal) => {
      const page = (pageToken: string) =>
        clientOf(MemoryService).listEntries({ sessionId, agent, pageSize: 1_000, pageToken }, { signal });
      return (await allPages(page)).flatMap(({ entries }) => entries);
    },
    refreshMs,
  );
  return (
    <>
      <Fault text={fault} />
      {value?.length === 0 && <p class="quiet">It keeps nothing yet.</p>}
      {titles.map(([kind, title]) => {
        const entries = value?.filter((entry) => entry.kind === kind) ?? [];
        if (entries.length === 0) return null;
        return (
          <section key={kind}>
            <h3>{title}</h3>
            <dl class="entries" tabIndex={0}>
              {entries.map((entry) => (
                <div key={entry.key}>
                  <dt>{entry.key}</dt>
                  <dd>
                    <span class="answer">{entry.text}</span> <span class="quiet">{whenOf(entry)}</span>
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        );
      })}
    </>
  );
}

function whenOf({ dueTime, wakeTime }: MemoryEntry): string {
  if (wakeTime) return `woke it at ${clockOf(msOf(wakeTime))}`;
  return dueTime ? `wakes it at ${clockOf(msOf(dueTime))}` : "";
}

/** Whose memory a member of a space has; undefined for a person. Its id is `session:<session>:<agent>`. */
export function keeperFrom(memberId: string): Keeper | undefined {
  const [kind, sessionId = "", agent = ""] = memberId.split(":");
  return kind === "session" && sessionId !== "" && agent !== "" ? { sessionId, agent } : undefined;
}
