import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { type RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";

/** The orchestrator as far as the router needs it: runs that are listed and canceled. */
export class FakeRuns {
  readonly runs: MessageInitShape<typeof RunSchema>[] = [];
  readonly canceled: { runId: string; reason: string }[] = [];

  readonly routes = (router: ConnectRouter): void => {
    router.service(RunService, {
      listRuns: ({ sessionId, states: statuses }) => ({
        runs: this.runs.filter(
          (run) => run.sessionId === sessionId && statuses.includes(run.state ?? RunState.UNSPECIFIED),
        ),
      }),
      cancelRun: ({ runId, reason }) => {
        this.canceled.push({ runId, reason });
        const run = this.runs.find(({ id }) => id === runId);
        if (run !== undefined) run.state = RunState.CANCELED;
        return {};
      },
    });
  };
}
