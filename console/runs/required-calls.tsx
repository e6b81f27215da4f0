import { useRef } from "preact/hooks";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { randomName } from "../../sdk/typescript/client/connection.ts";
import { SchemaForm } from "../parts/form/schema-form.tsx";
import { Fault } from "../parts/notice.tsx";
import { Section } from "../parts/screen.tsx";
import { prettyJson } from "../parts/text/pretty-json.ts";
import { TextBlock } from "../parts/text-block.tsx";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";

/** Calls of function tools, which the client of the run executes: where that one is gone, a person may. */
export function RequiredCalls({ runId, calls }: { runId: string; calls: readonly FunctionCall[] }) {
  if (calls.length === 0) return null;
  return (
    <Section title="Waits for its client">
      <div class="cards">
        {calls.map((call) => (
          <RequiredCall key={call.callId} runId={runId} call={call} />
        ))}
      </div>
    </Section>
  );
}

function RequiredCall({ runId, call }: { runId: string; call: FunctionCall }) {
  const { isBusy, fault, run } = useActing();
  const submissionId = useRef(randomName());
  const answer = (json: string) =>
    run(() =>
      clientOf(RunService).submitOutputs({
        runId,
        outputs: [
          { callId: call.callId, submissionId: submissionId.current, outcome: { case: "resultJson", value: json } },
        ],
      }),
    );
  return (
    <article class="card" aria-label={`${call.name} waits`}>
      <header>
        <strong>{call.name}</strong> <span class="quiet">a function of the program that started the run</span>
      </header>
      <TextBlock label="asked" text={prettyJson(call.argumentsJson)} />
      <SchemaForm schemaJson="" submitLabel="answer in its place" isBusy={isBusy} onAnswer={answer} />
      <Fault text={fault} />
    </article>
  );
}
