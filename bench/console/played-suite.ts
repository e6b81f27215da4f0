import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { RunEndReason, RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService, type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { createConsolePaths, readConsoleFiles } from "../../services/gateway/console/console-files.ts";

export interface PlayedSuite extends AsyncDisposable {
  readonly url: string;
}

/** What a page asks of a suite that has had this much to do; the text of a run ends with `LAST`. */
export interface Played {
  readonly runs: number;
  readonly deltas: number;
  readonly auditEvents: number;
}

export const LAST = "that was all.";

/** The console's files, and behind them services that answer at once: what is measured is the page. */
export function openPlayedSuite(played: Played): Promise<PlayedSuite> {
  return serveConsole((router) => {
    router.service(RunService, {
      listRuns: ({ pageSize, pageToken, states }) =>
        pageOfRuns(states.length > 0 ? 0 : played.runs, pageSize, pageToken),
      async *watchRuns(_request, { signal }) {
        yield { update: { case: "start" as const, value: { nextSequence: 1n } } };
        await left(signal); // nothing more happens
      },
      watchRun: ({ fromSequence }, { signal }) => updatesOfRun(played.deltas, Number(fromSequence ?? 0n), signal),
    });
    router.service(ToolCallService, { listToolCalls: () => ({ calls: [] }) });
    router.service(AuditService, {
      listAuditEvents: () => ({ events: [] }),
      async *watchAuditEvents(_request, { signal }) {
        for (let index = 0; index < played.auditEvents; index++)
          yield { update: { case: "event" as const, value: auditEvent(index) } };
        await left(signal); // nothing more happens
      },
    });
  });
}

/** Serves the console's files, and behind them what is played. */
export async function serveConsole(routes: (router: ConnectRouter) => void): Promise<PlayedSuite> {
  const takes = createConsolePaths({ files: await readConsoleFiles() });
  const serve = connectNodeAdapter({ routes });
  const server = createServer((request, response) => {
    if (!takes(request, response, request)) serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves when the page has gone. */
export function left(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

const startMs = Date.now();

export function pageOfRuns(count: number, pageSize: number, pageToken: string) {
  const first = Number(pageToken || 0);
  const last = Math.min(count, first + pageSize);
  const runs = Array.from({ length: last - first }, (_, index) =>
    create(RunSchema, {
      id: `run_${first + index}`,
      agent: "clerk",
      state: RunState.COMPLETED,
      endReason: RunEndReason.FINAL_ANSWER,
      inputText: `Question ${first + index}, in some words?`,
      outputText: `Answer ${first + index}, in some words.`,
      turnCount: 2,
      createTime: timestampFromMs(startMs - (first + index) * 1_000),
      endTime: timestampFromMs(startMs - (first + index) * 1_000 + 400),
    }),
  );
  return { runs, nextPageToken: last < count ? `${last}` : "" };
}

/** A run that writes one long answer. */
async function* updatesOfRun(
  deltas: number,
  fromSequence: number,
  signal: AbortSignal,
): AsyncGenerator<WatchRunResponse> {
  if (fromSequence === 0) {
    yield eventUpdate(0, { case: "accepted", value: { agent: "clerk", sessionId: "s" } });
    yield eventUpdate(1, { case: "claimed", value: {} });
  }
  for (let index = 0; index < deltas; index++) {
    const value = index === deltas - 1 ? LAST : `word ${index} `;
    const delta = { turn: 1, attempt: 1, index, delta: { case: "text", value } } as const;
    yield create(WatchRunResponseSchema, { update: { case: "delta", value: delta } });
  }
  await left(signal); // the model thinks on
}

type Happened =
  | { case: "accepted"; value: { agent: string; sessionId: string } }
  | { case: "claimed"; value: Record<string, never> };

function eventUpdate(sequence: number, event: Happened): WatchRunResponse {
  const value = { runId: "run_0", sequence, createTime: timestampFromMs(startMs), event };
  return create(WatchRunResponseSchema, { update: { case: "event", value } });
}

export function auditEvent(index: number) {
  return create(AuditEventSchema, {
    sequence: BigInt(index),
    kind: AuditKind.PERMITTED,
    createTime: timestampFromMs(startMs),
    tool: "echo",
    rule: "in tools.allowed",
    callId: `call_${`${index}`.padStart(7, "0")}`,
    runId: "run_0",
  });
}
