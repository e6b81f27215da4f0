import { useSignal } from "@preact/signals";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type CallToolResult, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { SchemaForm } from "../parts/form/schema-form.tsx";
import { Fault } from "../parts/notice.tsx";
import { prettyJson } from "../parts/text/pretty-json.ts";
import { TextBlock } from "../parts/text-block.tsx";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";

/** Calls a tool as its agent would: under its policy, recorded and audited, in a session that is closed after it. */
export function TryTool({ agent, name, schemaJson }: { agent: string; name: string; schemaJson: string }) {
  const { isBusy, fault, run } = useActing();
  const result = useSignal<CallToolResult>();
  const progress = useSignal("");
  const call = (argumentsJson: string) =>
    run(async () => {
      result.value = undefined;
      const sessions = clientOf(SessionService);
      const { session } = await sessions.createSession({ agent });
      const sessionId = session?.id ?? "";
      try {
        for await (const { event } of clientOf(ToolService).callTool({ sessionId, name, argumentsJson })) {
          if (event.case === "result") result.value = event.value;
          else if (event.case === "progress") progress.value = event.value.message || `${event.value.progress}`;
        }
      } finally {
        progress.value = "";
        await sessions.closeSession({ sessionId });
      }
    });
  return (
    <>
      <SchemaForm schemaJson={schemaJson} submitLabel={isBusy ? "called …" : "call"} isBusy={isBusy} onAnswer={call} />
      {progress.value && <p class="quiet">{progress.value}</p>}
      <Fault text={fault} />
      {result.value && (
        <TextBlock label={result.value.isError ? "error" : "result"} text={textOfResult(result.value)} />
      )}
    </>
  );
}

function textOfResult({ outputJson, content, storedReference }: CallToolResult): string {
  const blocks = content.map(({ blockJson }) => prettyJson(blockJson));
  return [outputJson && prettyJson(outputJson), ...blocks].filter(Boolean).join("\n") || storedReference;
}
