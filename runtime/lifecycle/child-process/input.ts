import type { Writable } from "node:stream";
import type { Failure } from "../../failure/failure.ts";
import { LocalFailure } from "../../failure/local-failure.ts";

export interface Input {
  /**
   * Resolves when more may be written: at once, or when the child has read on. Writes keep their order, waited for or not.
   * Rejects `unavailable` when the child's input is closed.
   */
  write(data: string | Uint8Array): Promise<void>;
  end(): void;
}

export function createInput(stdin: Writable, describe: () => string): Input {
  let drained: Promise<void> | undefined;

  stdin.on("error", () => {}); // the child closed its input; each writer is told by its own write

  function closed(): Failure {
    return new LocalFailure("unavailable", `${describe()} takes no more input`, { kind: "child_input_closed" });
  }

  /** One wait for all writers, so that a thousand of them are not a thousand listeners. */
  function untilDrained(): Promise<void> {
    drained ??= new Promise<void>((resolve, reject) => {
      const finish = (settle: () => void) => {
        stdin.off("drain", onDrain);
        stdin.off("close", onClose);
        drained = undefined;
        settle();
      };
      const onDrain = () => finish(resolve);
      const onClose = () => finish(() => reject(closed()));
      stdin.once("drain", onDrain);
      stdin.once("close", onClose);
    });
    return drained;
  }

  return {
    async write(data) {
      if (!stdin.writable) throw closed();
      if (stdin.writableCorked === 0) {
        stdin.cork(); // what is written in one turn goes by one system call, and wakes the child once
        process.nextTick(() => stdin.uncork());
      }
      if (!stdin.write(data)) await untilDrained();
    },
    end() {
      stdin.end();
    },
  };
}
