import { type Frame, FrameFlag, FrameKind } from "./frame.ts";

/*
 * What a side may say in a frame, whatever the state of its call: docs/connect-over-nats/README.md, FRAME-2 to FRAME-5.
 * A frame that breaks a rule ends the call, and nothing of it is taken.
 */

const KNOWN_FLAGS = FrameFlag.more | FrameFlag.end;
const CREDIT_BYTES = 8;

/** What is wrong with a frame of that sender, or undefined. */
export function faultOf(frame: Frame, sender: "client" | "server"): string | undefined {
  const { kind, flags, body } = frame;
  if (kind === FrameKind.data) {
    if (flags < KNOWN_FLAGS) return undefined;
    return flags === KNOWN_FLAGS ? "ended in the middle of a message" : "set a flag that does not exist";
  }
  if (flags !== FrameFlag.none) return "set a flag where there is none";
  if (kind === FrameKind.error) return sender === "client" ? "sent an error, as only servers do" : undefined;
  if (kind === FrameKind.cancel && sender === "server") return "sent a cancel, as only clients do";
  if (kind === FrameKind.credit) return body.length === CREDIT_BYTES ? undefined : "sent credit that cannot be read";
  return body.length === 0 ? undefined : "sent a body where there is none";
}
