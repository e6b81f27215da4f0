import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService, type WatchRunsResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import type { PageRequest } from "#runtime/rpc/paging/page.ts";
import { msOf, wordFrom } from "../parts/words.ts";
import { clientOf, noteAnswer } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";
import { followRuns } from "./followed-runs.ts";

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

/** Runs as far as they were looked through, latest first: the newest are followed, older ones are asked for as one scrolls. */
export interface ListedRuns extends Followed<WatchRunsResponse> {
  readonly runs: readonly Run[];
  readonly isWhole: boolean;
  /** Whether the latest ones were listed. */
  readonly hasBegun: boolean;
  /** Asks for the next page of older ones; gives whether one came. */
  more(): Promise<boolean>;
}

/** Lists so many at first, or a page. */
export function listRuns({ states, withinMs, ...filter }: RunFilter, firstRuns = 0): ListedRuns {
  const byId = new Map<string, Run>();
  let sorted: readonly Run[] | undefined = [];
  let nextPage: string | undefined;
  let isAsking = false;
  let heldRuns = Math.max(pageSize, firstRuns);
  let oldestMs = 0;

  const startTime = withinMs === undefined ? undefined : { startTime: timestampFromMs(Date.now() - withinMs) };
  const request = { ...filter, states: [...states], ...startTime };
  async function ask(page: PageRequest, signal?: AbortSignal) {
    const answer = await clientOf(RunService).listRuns({ ...request, ...page }, signal ? { signal } : {});
    noteAnswer(); // on a slow way, many take long
    return { items: answer.runs, nextPageToken: answer.nextPageToken };
  }

  function take(runs: readonly Run[]): void {
    for (const run of runs) byId.set(run.id, run);
    sorted = undefined;
  }

  /** Of older runs, those that were listed are shown: others would stand behind a hole. */
  function isListed(run: Run): boolean {
    return nextPage === "" || byId.has(run.id) || startOf(run) >= oldestMs;
  }

  const followed = followRuns(request, {
    async list(signal) {
      const { items, nextPageToken } = await firstOf(heldRuns, (page) => ask(page, signal));
      byId.clear(); // what changed among the older ones is not known
      nextPage = nextPageToken;
      oldestMs = startOf(items.at(-1));
      take(items);
    },
    put(run) {
      if (isListed(run)) take([run]);
    },
    remove(runId) {
      if (byId.delete(runId)) sorted = undefined;
    },
  });

  return {
    ...followed,
    get runs() {
      sorted ??= [...byId.values()].sort((one, other) => startOf(other) - startOf(one));
      return sorted;
    },
    get isWhole() {
      return nextPage === "";
    },
    get hasBegun() {
      return nextPage !== undefined;
    },
    async more() {
      const asked = nextPage;
      if (isAsking || asked === undefined || asked === "") return false;
      isAsking = true;
      try {
        const { items, nextPageToken } = await ask({ pageSize, pageToken: asked });
        if (nextPage !== asked) return true; // listed anew meanwhile: this page is not the next one
        nextPage = nextPageToken;
        heldRuns += items.length;
        oldestMs = Math.min(oldestMs, startOf(items.at(-1)));
        take(items);
        return true;
      } finally {
        isAsking = false;
      }
    },
  };
}

function startOf(run: Run | undefined): number {
  return msOf(run?.createTime) ?? 0;
}

/** Whether a run has all the words somewhere: its id, session, agent, question, end, error or answer. */
export function matches(run: Run, words: string): boolean {
  const { id, sessionId, agent, inputText, endReason, error, outputText } = run;
  const text = [id, sessionId, agent, inputText, wordFrom(RunEndReason, endReason), error, outputText]
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
