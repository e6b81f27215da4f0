import { timestampFromMs } from "@bufbuild/protobuf/wkt";
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
  const [, agent] = /^agent_(.+)$/.exec(span.facts.tool ?? span.label) ?? [];
  return agent === undefined ? null : <FoundRun {...{ runId, span, agent }} />;
}

function FoundRun({ runId, span: { id, startMs, endMs }, agent }: CalledRunProps & { agent: string }) {
  const { value } = usePolled(
    `${runId} ${id}`,
    async (signal) => {
      const startTime = timestampFromMs(startMs - clockMs);
      const time = endMs === undefined ? { startTime } : { startTime, endTime: timestampFromMs(endMs + clockMs) };
      const page = (pageToken: string) =>
        clientOf(RunService).listRuns({ agent, ...time, pageSize: 1_000, pageToken }, { signal });
      const runs = (await allPages(page)).flatMap(({ runs }) => runs);
      return runs.find(({ parent }) => parent?.runId === runId && parent.callId === id)?.id;
    },
    endMs === undefined ? 2_000 : 0,
  );
  return value === undefined ? null : (
    <p>
      answered by run <a href={linkTo("runs", value)}>{value}</a> of {agent}
    </p>
  );
}
