import { useSignal } from "@preact/signals";
import { errorOf } from "../../sdk/typescript/client/error.ts";
import { noteFailure } from "./connection.ts";

export interface Acting {
  readonly isBusy: boolean;
  /** What the suite said against it, or that it cannot be reached. */
  readonly fault: string | undefined;
  /** Does it, unless it is being done; gives whether it was. */
  run(act: () => Promise<unknown>): Promise<boolean>;
}

/** Something that a person does by a button: busy until it is answered, and refused in words. */
export function useActing(): Acting {
  const busy = useSignal(false);
  const fault = useSignal<string>();
  return {
    isBusy: busy.value,
    fault: fault.value,
    async run(act) {
      if (busy.value) return false;
      busy.value = true;
      fault.value = undefined;
      try {
        await act();
        return true;
      } catch (error) {
        noteFailure(error);
        fault.value = errorOf(error, location.origin).message;
        return false;
      } finally {
        busy.value = false;
      }
    },
  };
}
