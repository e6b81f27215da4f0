import type { ConnectError } from "@connectrpc/connect";
import type { Timings } from "../call/timings.ts";
import type { Credit } from "../frame/frame.ts";
import type { CallMux } from "./mux.ts";

/** How far a call has come, from which a failure's delivery follows. */
export interface Progress {
  stage: "unsent" | "sent" | "answered";
}

export interface ChannelOptions {
  readonly mux: CallMux;
  readonly timings: Timings;
  readonly role: "client" | "server";
  /** The window that this side opens for its peer. */
  readonly window: Credit;
  /** What of it the peer has been granted by the opening message, and is booked already. */
  readonly granted?: Credit;
  /** Whether a server is sent one request, from which it works until the call is over. */
  readonly takesOneRequest?: boolean;
  /** For whom the call is, as it says: large messages of each share their room. */
  readonly sender: () => string;
  /** The peer's inbox, when it is known from the start. */
  readonly peer?: string;
  /** An address that this call has already, for a channel that goes on with it. */
  readonly inbox?: string;
  /** channel-9: of the call whose client this is. */
  readonly progress?: Progress;
  /** Where the request goes, on the client. */
  readonly subject?: string;
  /** Where a cancel goes when the server has not shown itself, on the client. */
  readonly cancelSubject?: string;
  /** Nothing has come for longer than from a peer that is well. */
  readonly onSilence?: (() => void) | undefined;
  /** The call is over, by failure or by the peer's cancel. */
  readonly onFailure?: (error: ConnectError) => void;
}
