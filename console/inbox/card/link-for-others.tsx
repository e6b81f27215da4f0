import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { CreateCallKeyResponse } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { Fault } from "../../parts/notice.tsx";
import { linkTo } from "../../parts/place.ts";
import { CopyButton } from "../../parts/text-block.tsx";
import { msOf } from "../../parts/words.ts";
import { useActing } from "../../suite/acting.ts";
import { clientOf } from "../../suite/connection.ts";

const lifetimes: Readonly<Record<string, bigint>> = { "an hour": 3_600n, "a day": 86_400n, "a week": 604_800n };

/** Makes a key by which somebody else answers this question, and does nothing else. */
export function LinkForOthers({ callId }: { callId: string }) {
  const id = useId();
  const chosen = useSignal("an hour");
  const made = useSignal<CreateCallKeyResponse>();
  const { isBusy, fault, run } = useActing();
  const make = () =>
    run(async () => {
      const lifetime = { seconds: lifetimes[chosen.value] ?? 3_600n };
      made.value = await clientOf(ToolCallService).createCallKey({ callId, lifetime });
    });
  if (made.value) return <MadeKey callId={callId} made={made.value} />;
  return (
    <div class="form">
      <div class="field">
        <label for={id}>The key holds for</label>
        <select
          id={id}
          value={chosen.value}
          onChange={(event) => {
            chosen.value = event.currentTarget.value;
          }}
        >
          {Object.keys(lifetimes).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <Fault text={fault} />
      <button type="button" disabled={isBusy} onClick={make}>
        make a key
      </button>
    </div>
  );
}

/** The key stands here alone, and is gone with the page: never in an address. */
function MadeKey({ callId, made }: { callId: string; made: CreateCallKeyResponse }) {
  const link = `${location.origin}/${linkTo("inbox", callId)}`;
  return (
    <div class="form">
      <p>
        Whoever has the key can answer this question in your name until{" "}
        {new Date(msOf(made.expireTime) ?? 0).toLocaleString()}, and do nothing else. Send the link and the key by two
        ways.
      </p>
      <Copied label="Link" text={link} />
      <Copied label="Key" text={made.key} />
    </div>
  );
}

function Copied({ label, text }: { label: string; text: string }) {
  return (
    <>
      <label class="field">
        {label}
        <input readOnly value={text} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <CopyButton text={text} label={`copy the ${label.toLowerCase()}`} />
    </>
  );
}
