import type { Caller } from "#runtime/rpc/identity.ts";
import type { CallEvent } from "../in-flight.ts";

/** The calls that routers execute at the moment, this one and all others. */
export interface RunningCalls {
  /** Whether a router executes the call. A router that only waits for it does not count. */
  isHeld(callId: string, signal: AbortSignal): Promise<boolean>;
  /** What the call tells at the router that executes it, for as long as this one asks whether it is held. */
  follow(callId: string, onEvent: (event: CallEvent) => void): Disposable;
  /** Ends a call wherever it runs, and keeps it from being begun; whether it ran. Refused when it is somebody else's. */
  cancel(callId: string, caller: Caller): Promise<boolean>;
}
