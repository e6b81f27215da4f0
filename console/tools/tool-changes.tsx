import type { ToolChange } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { Fault } from "../parts/notice.tsx";
import { TextBlock } from "../parts/text-block.tsx";
import { useActing } from "../suite/acting.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

/** Tools whose definition is no longer the one that was approved: not called until a person approves them. */
export function ToolChanges({ agent }: { agent: string }) {
  const { value, again } = usePolled(
    agent,
    async (signal) => (await clientOf(ToolService).approveTools({ agent }, { signal })).changes,
    6_000,
  );
  if (!value?.length) return null;
  return (
    <div class="cards">
      {value.map((change) => (
        <Change key={change.reference} agent={agent} change={change} onApproved={again} />
      ))}
    </div>
  );
}

function Change({ agent, change, onApproved }: { agent: string; change: ToolChange; onApproved: () => void }) {
  const { isBusy, fault, run } = useActing();
  const { reference, approved, offered, offeredDigest: digest } = change;
  const approve = async () => {
    const request = { agent, approvals: [{ reference, digest }] };
    if (await run(() => clientOf(ToolService).approveTools(request))) onApproved();
  };
  return (
    <article class="card" aria-label={`${reference} has changed`}>
      <header>
        <strong>{reference}</strong> <span class="quiet">is not what was approved, and is not called until it is</span>
      </header>
      <div class="before-after">
        <TextBlock label="approved" text={definitionText(approved)} />
        <TextBlock label="offered now" text={definitionText(offered)} />
      </div>
      <Fault text={fault} />
      <button type="button" class="main" disabled={isBusy} onClick={approve}>
        approve what is offered now
      </button>
    </article>
  );
}

function definitionText(tool: ToolChange["offered"]): string {
  if (!tool) return "nothing";
  return [tool.description, tool.inputSchemaJson, tool.outputSchemaJson].filter(Boolean).join("\n");
}
