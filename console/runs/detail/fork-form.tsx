import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { randomName } from "../../../sdk/typescript/client/connection.ts";
import { Fault } from "../../parts/notice.tsx";
import { goTo, linkTo, place } from "../../parts/place.ts";
import { useActing } from "../../suite/acting.ts";
import { clientOf } from "../../suite/connection.ts";

/** Starts another run from here on, with what one wants to say instead. */
export function ForkForm({ runId, atSequence: latest }: { runId: string; atSequence: number }) {
  const { isBusy, fault, run } = useActing();
  const text = useSignal("");
  /** What is asked again is the same fork, also of a run that went on meanwhile; other words or another choice make another one. */
  const asked = useMemo(() => ({ idempotencyKey: randomName(), atSequence: -1 }), [text.value, place.value]);
  const atSequence = asked.atSequence < 0 ? latest : asked.atSequence;
  const fork = async (event: Event) => {
    event.preventDefault();
    asked.atSequence = atSequence;
    await run(async () => {
      const said = { role: Role.USER, content: [{ part: { case: "text", value: text.value } as const }] };
      const response = await clientOf(RunService).forkRun({
        runId,
        ...asked,
        input: text.value === "" ? [] : [{ item: { case: "message", value: said } }],
      });
      goTo(linkTo("runs", response.run?.id));
    });
  };
  return (
    <form class="form" onSubmit={fork}>
      <div class="field">
        <label for="fork-text">Fork after event {atSequence}, and say</label>
        <small>Starts another run that goes on from here, with these words in place of what came after.</small>
        <textarea
          id="fork-text"
          rows={3}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
      </div>
      <Fault text={fault} />
      <button type="submit" disabled={isBusy}>
        fork
      </button>
    </form>
  );
}
