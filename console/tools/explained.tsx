import { ExplainStage, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { wordFrom } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

/** The way from a name to the decision, step by step. */
export function Explained({ agent, name }: { agent: string; name: string }) {
  const { value, fault } = usePolled(
    `${agent} ${name}`,
    (signal) => clientOf(ToolService).explainTool({ scope: { case: "agent", value: agent }, name }, { signal }),
    0,
  );
  if (!value) return <Fault text={fault} />;
  return (
    <ol class="way" aria-label={`how ${name} is decided`}>
      {value.steps.map(({ stage, finding, passed }) => (
        <li key={stage} class={passed ? "passed" : "stopped"}>
          <strong>
            {passed ? "✓" : "✕"} {wordFrom(ExplainStage, stage)}
          </strong>
          <span>{finding}</span>
        </li>
      ))}
      <li class={value.callable ? "passed" : "stopped"}>
        <strong>{value.callable ? "✓ may be called" : "✕ may not be called"}</strong>
        <span>{value.rule || value.unavailableReason}</span>
      </li>
    </ol>
  );
}
