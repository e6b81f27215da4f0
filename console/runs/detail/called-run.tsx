import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Signal, useSignal } from "@preact/signals";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { linkTo } from "../../parts/place.ts";
import { clientOf } from "../../suite/connection.ts";
import { usePolled } from "../../suite/polled.ts";
import type { Span } from "../timeline/spans.ts";

interface CalledRunProps {
  runId: string;
  span: Span;
}

/** By how much clocks of machines differ, in ms. */
const clockMs = 60_000;

/** The run of the sub-agent that a call is answered by. */
export function CalledRun({ runId, span }: CalledRunProps) {
  const found = useSignal("");
  const [, agent] = /^agent_(.+)$/.exec(span.facts.tool ?? span.label) ?? [];
  if (agent === undefined) return null;
  if (found.value === "") return <Search {...{ runId, span, agent, found }} />;
  return (
    <p>
      answered by run <a href={linkTo("runs", found.value)}>{found.value}</a> of {agent}
    </p>
  );
}

interface SearchProps extends CalledRunProps {
  agent: string;
  found: Signal<string>;
}

/** Looks for the run until it is found, at leisure: since a call that is open for long, many may have begun. */
function Search({ runId, span: { id, startMs, endMs }, agent, found }: SearchProps) {
  usePolled(
    `${endMs}`,
    async (signal) => {
      const startTime = timestampFromMs(startMs - clockMs);
      const time = endMs === undefined ? { startTime } : { startTime, endTime: timestampFromMs(endMs + clockMs) };
      const page = (pageToken: string) =>
        clientOf(RunService).listRuns({ agent, ...time, pageSize: 1_000, pageToken }, { signal });
      const runs = (await allPages(page)).flatMap(({ runs }) => runs);
      found.value = runs.find(({ parent }) => parent?.runId === runId && parent.callId === id)?.id ?? "";
    },
    endMs === undefined ? 10_000 : 0,
  );
  return null;
}
