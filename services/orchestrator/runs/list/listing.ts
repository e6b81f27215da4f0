/**
 * Lists runs by the queues that they stand in, latest first.
 *
 * list-1  A page costs what it shows: its token is the place where the page before it ended, and the listing goes on from there.
 * list-2  A request looks at a bounded number of runs; those that their entries name as others' cost it little. With a filter that
 *     few runs pass, a page may be short, or empty, and name where to go on all the same.
 * list-3  A page has a bounded number of bytes, or one run: each brings what it answered.
 * list-4  What was accepted before the time that is asked for ends the list: only runs that came before follow. Runs of different
 *     processes may stand in each other's place by as much as their clocks and acceptances differ (`disorderMs`).
 */

import { type Run, RunSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ListRunsRequest } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { openPage, sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { type ListName, placeFromToken, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import { type RunLog, readState, unlessBroken } from "../../log/journal.ts";
import { entriesBackward, type QueueEntry, type QueuePages, type SessionQueues } from "../../sessions/queue.ts";
import { filterFrom, rowFrom } from "./run-filter.ts";

export interface ListingOptions {
  readonly log: RunLog;
  readonly queues: SessionQueues;
  readonly pages: QueuePages;
}

const mostLookedAt = 1_000;
/** Of looking at a run, what passing over an entry costs. */
const passing = 0.1;
const atOnce = 16;
const disorderMs = 60_000;

/** Runs without their items and drafts; from outside only those of the asker's own sessions. */
export async function listRuns(
  options: ListingOptions,
  request: ListRunsRequest,
  caller: Caller,
): Promise<{ runs: Run[]; nextPageToken: string }> {
  const { sessionId, pageToken } = request;
  const limit = sizeOfPage(request.pageSize);
  const filter = filterFrom(request);
  const { states, agent, tool } = request;
  const words = [states.toSorted(), agent, tool, filter.startMs, filter.endMs];
  const list: ListName = ["runs", caller.principal ?? "", sessionId, ...words];
  const place = placeFromToken(list, pageToken);
  const before = place === "" ? undefined : Number(place);
  const entries = sessionId === "" ? entriesOfAll(options.pages, before) : entriesOfSession(options, sessionId, before);
  const isOthers = ({ queued: { principal } }: QueueEntry) =>
    sessionId === "" && principal !== "" && !isOwner(principal, caller);
  const runs: Run[] = [];
  const takes = openPage(RunSchema);
  let lookedAt = 0;
  let last = place;
  for await (const some of inChunks(entries, Math.min(atOnce, limit))) {
    const stateOf = async (entry: QueueEntry) =>
      isOthers(entry) ? undefined : readState(options.log, entry.queued.runId).catch(unlessBroken);
    const read = await Promise.all(some.map(async (entry) => ({ entry, state: await stateOf(entry) })));
    for (const { entry, state } of read) {
      if (state !== undefined && sessionId !== "") requireOwner(state.accepted, caller, `session ${sessionId}`);
      const latestMs = state?.acceptedAtMs ?? entry.writtenAtMs ?? Number.POSITIVE_INFINITY;
      if (latestMs < filter.startMs - disorderMs) return { runs, nextPageToken: "" }; // list-4
      if (state && isOwner(state.accepted.principal, caller) && filter.takes(state)) {
        const row = rowFrom(state);
        if (!takes(row)) return { runs, nextPageToken: tokenFromPlace(list, last) };
        runs.push(row);
      }
      lookedAt += isOthers(entry) ? passing : 1;
      last = String(entry.position);
      if (runs.length === limit || lookedAt >= mostLookedAt) return { runs, nextPageToken: tokenFromPlace(list, last) };
    }
  }
  return { runs, nextPageToken: "" };
}

async function* entriesOfSession({ queues, pages }: ListingOptions, sessionId: string, before: number | undefined) {
  if (before === undefined) yield* entriesBackward(queues, await queues.last(sessionId));
  else yield* entriesBackward(queues, await pages.beforePosition(sessionId, before));
}

async function* entriesOfAll(pages: QueuePages, before: number | undefined): AsyncGenerator<QueueEntry> {
  for (let next = before; ; ) {
    const entries = await pages.latest(next);
    yield* entries;
    next = entries.at(-1)?.position;
    if (next === undefined) return;
  }
}

async function* inChunks<T>(elements: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let chunk: T[] = [];
  for await (const element of elements) {
    chunk.push(element);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
