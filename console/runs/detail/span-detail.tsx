import { Facts } from "../../parts/screen.tsx";
import { prettyJson } from "../../parts/text/pretty-json.ts";
import { usageText } from "../../parts/text/usage-text.ts";
import { TextBlock } from "../../parts/text-block.tsx";
import { clockOf, durationOf } from "../../parts/words.ts";
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
      {span.kind === "call" && <CalledRun key={span.id} runId={runId} span={span} />}
      {input && <TextBlock label={span.kind === "call" ? "arguments" : "given"} text={prettyJson(input)} />}
      {output && <TextBlock label={span.kind === "call" ? "result" : "said"} text={prettyJson(output)} />}
      {logs.length > 0 && <TextBlock label="log" text={logs.join("\n")} />}
    </div>
  );
}
