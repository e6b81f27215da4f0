import { clone } from "@bufbuild/protobuf";
import { type SpaceEvent, type SpaceMessage, SpaceMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";

/** What a space's log says, folded. */
export interface SpaceState {
  /** Of the last event that is folded in. */
  sequence: bigint;
  /** In order of their positions. */
  messages: SpaceMessage[];
  messagesById: Map<string, SpaceMessage>;
}

/** As many as the stream keeps events of a space: older ones are forgotten there too. */
export const keptMessages = 10_000;

export function emptySpace(): SpaceState {
  return { sequence: 0n, messages: [], messagesById: new Map() };
}

/** Takes in the next event, which carries its sequence. */
export function foldEvent(state: SpaceState, event: SpaceEvent): void {
  state.sequence = event.sequence;
  const message = messageOfEvent(event);
  if (message === undefined) return;
  const known = state.messagesById.get(message.id);
  if (known === undefined) append(state, message);
  else replace(state, known, message);
}

/** The message that an event posts or changes. */
export function messageOfEvent({ event }: SpaceEvent): SpaceMessage | undefined {
  switch (event.case) {
    case "memberJoined":
    case "memberLeft":
    case undefined:
      return undefined;
    default:
      return event.value;
  }
}

/** The event as it stands at its place in the log: a message that has no position yet gets this one. */
export function eventAt(event: SpaceEvent, sequence: bigint): SpaceEvent {
  const message = messageOfEvent(event);
  if (message !== undefined && message.sequence === 0n) message.sequence = sequence;
  event.sequence = sequence;
  return event;
}

function append(state: SpaceState, message: SpaceMessage): void {
  state.messages.push(message);
  state.messagesById.set(message.id, message);
  if (state.messages.length <= keptMessages) return;
  const forgotten = state.messages.shift();
  if (forgotten) state.messagesById.delete(forgotten.id);
}

function replace(state: SpaceState, known: SpaceMessage, message: SpaceMessage): void {
  const updated = clone(SpaceMessageSchema, message);
  updated.sequence = known.sequence;
  state.messages[state.messages.indexOf(known)] = updated;
  state.messagesById.set(message.id, updated);
}

/** A page counted from the latest message: `offset` of the latest are passed over. Oldest first. */
export function pageFromLatest(messages: readonly SpaceMessage[], offset: number, limit: number): SpaceMessage[] {
  const end = Math.max(messages.length - offset, 0);
  return messages.slice(Math.max(end - limit, 0), end);
}
