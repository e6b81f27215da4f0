import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { Fault } from "../../parts/notice.tsx";
import { Facts } from "../../parts/screen.tsx";
import { prettyJson } from "../../parts/text/pretty-json.ts";
import { usageText } from "../../parts/text/usage-text.ts";
import { TextBlock } from "../../parts/text-block.tsx";
import { clockOf, durationOf } from "../../parts/words.ts";
import { useActing } from "../../suite/acting.ts";
import { clientOf } from "../../suite/connection.ts";
import { OPENED } from "../open-log-file.tsx";
import { saveFile } from "../timeline/log-file.ts";
import type { Span } from "../timeline/spans.ts";
import { CalledRun } from "./called-run.tsx";

interface SpanDetailProps {
  runId: string;
  span: Span;
  nowMs: number;
  decision: string;
}

/** What one span was given, what came of it, what it took. */
export function SpanDetail({ runId, span, nowMs, decision }: SpanDetailProps) {
  const { facts, usage, input, output, logs, startMs, endMs } = span;
  const isAsked = runId !== OPENED; // the suite knows nothing of a file, and is to learn nothing
  return (
    <div class="detail">
      <h2>{span.label}</h2>
      <Facts
        of={{
          ...facts,
          policy: decision,
          used: usageText(usage),
          began: clockOf(startMs),
          took: span.kind === "note" ? "" : durationOf((endMs ?? nowMs) - startMs),
          "stored as event": `${span.sequence}`,
        }}
      />
      {isAsked && span.kind === "call" && <CalledRun key={span.id} runId={runId} span={span} />}
      {input && <TextBlock label={span.kind === "call" ? "arguments" : "given"} text={prettyJson(input)} />}
      {output && <TextBlock label={span.kind === "call" ? "result" : "said"} text={prettyJson(output)} />}
      {isAsked && facts["stored as"] && <WholeResult key={span.id} reference={facts["stored as"]} />}
      {logs.length > 0 && <TextBlock label="log" text={logs.join("\n")} />}
    </div>
  );
}

/** Saves a result of which the run's log has the beginning. */
function WholeResult({ reference: value }: { reference: string }) {
  const { isBusy, fault, run } = useActing();
  const save = () =>
    run(async () => {
      const chunks: BlobPart[] = [];
      for await (const { part } of clientOf(ToolCallService).readResult({ result: { case: "storedReference", value } }))
        if (part.case === "chunk") chunks.push(part.value.data as Uint8Array<ArrayBuffer>);
      saveFile(`${value}.json`, ...chunks);
    });
  return (
    <>
      <Fault text={fault} />
      <button type="button" disabled={isBusy} onClick={save}>
        save the whole result
      </button>
    </>
  );
}
