import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface DeclinableProps {
  /** What declining does, in words. */
  told: string;
  /** Whether who asks is told a reason. */
  hasReason: boolean;
  isBusy: boolean;
  onDecline: (reason: string) => void;
  /** The form, given the button that stands beside its own. */
  children: (beside: ComponentChildren) => ComponentChildren;
}

/** A form that can be declined, which is asked once more before it is done. What was typed stays meanwhile. */
export function Declinable({ told, hasReason, isBusy, onDecline, children }: DeclinableProps) {
  const isDeclining = useSignal(false);
  const show = (is: boolean) => () => {
    isDeclining.value = is;
  };
  const beside = (
    <button type="button" disabled={isBusy} onClick={show(true)}>
      decline…
    </button>
  );
  return (
    <>
      <div hidden={isDeclining.value}>
        {children(beside)}
        <p class="quiet">An answer, “no” too, goes back as the result. Decline says that nobody answers.</p>
      </div>
      {isDeclining.value && <DeclineForm {...{ told, hasReason, isBusy, onDecline }} onBack={show(false)} />}
    </>
  );
}

type DeclineFormProps = Omit<DeclinableProps, "children"> & { onBack: () => void };

function DeclineForm({ told, hasReason, isBusy, onDecline, onBack }: DeclineFormProps) {
  const reason = useSignal("");
  const decline = (event: Event) => {
    event.preventDefault();
    onDecline(reason.value.trim());
  };
  return (
    <form class="form" onSubmit={decline}>
      <p>Decline: {told}.</p>
      {hasReason && (
        <label class="field">
          Reason (may be left out)
          <input
            type="text"
            maxLength={1_000}
            value={reason.value}
            onInput={(event) => {
              reason.value = event.currentTarget.value;
            }}
          />
        </label>
      )}
      <div class="buttons">
        <button type="submit" class="main" disabled={isBusy}>
          decline
        </button>
        <button type="button" onClick={onBack}>
          back
        </button>
      </div>
    </form>
  );
}
