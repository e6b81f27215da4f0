import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { msOf, wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";

export interface RunFilter {
  readonly states: readonly RunState[];
  readonly sessionId: string;
  readonly agent: string;
  readonly tool: string;
  /** How far back, in ms; absent for all. */
  readonly withinMs?: number | undefined;
}

/** Runs of a page. */
const pageSize = 200;

/** Runs as far as they were looked through, latest first: the newest are asked for again and again, older ones as one scrolls. */
export interface ListedRuns {
  readonly runs: readonly Run[];
  readonly isWhole: boolean;
  /** Asks for the latest ones. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Asks for the next page of older ones. */
  more(): Promise<void>;
}

export function listRuns({ states, withinMs, ...filter }: RunFilter): ListedRuns {
  const byId = new Map<string, Run>();
  let sorted: readonly Run[] = [];
  let nextPage: string | undefined;
  let isAsking = false;

  const startTime = withinMs === undefined ? undefined : { startTime: timestampFromMs(Date.now() - withinMs) };
  const request = { ...filter, states: [...states], pageSize, ...startTime };
  const ask = (pageToken: string, signal?: AbortSignal) =>
    clientOf(RunService).listRuns({ ...request, pageToken }, signal ? { signal } : {});

  function take(runs: readonly Run[]): void {
    for (const run of runs) byId.set(run.id, run);
    sorted = [...byId.values()].sort((one, other) => (msOf(other.createTime) ?? 0) - (msOf(one.createTime) ?? 0));
  }

  return {
    get runs() {
      return sorted;
    },
    get isWhole() {
      return nextPage === "";
    },
    async refresh(signal) {
      const { runs, nextPageToken } = await ask("", signal);
      if (!runs.some(({ id }) => byId.has(id))) {
        byId.clear(); // more came since than a page holds: what lies between is listed anew
        nextPage = nextPageToken;
      }
      const oldest = msOf(runs.at(-1)?.createTime) ?? 0;
      const told = new Set(runs.map(({ id }) => id));
      // What is no longer among the latest has left the filter, or was deleted.
      for (const [id, { createTime }] of byId)
        if (!told.has(id) && (nextPageToken === "" || (msOf(createTime) ?? 0) > oldest)) byId.delete(id);
      take(runs);
    },
    async more() {
      if (isAsking || nextPage === undefined || nextPage === "") return;
      isAsking = true;
      try {
        const { runs, nextPageToken } = await ask(nextPage);
        nextPage = nextPageToken;
        take(runs);
      } finally {
        isAsking = false;
      }
    },
  };
}

/** Whether a run has all the words somewhere: its id, session, agent, end, error or answer. */
export function matches(run: Run, words: string): boolean {
  const text = [run.id, run.sessionId, run.agent, wordFrom(RunEndReason, run.endReason), run.error, run.outputText]
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
