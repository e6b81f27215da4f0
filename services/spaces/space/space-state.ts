import { clone } from "@bufbuild/protobuf";
import {
  type Member,
  type SpaceEvent,
  type SpaceMessage,
  SpaceMessageSchema,
  ToolMessageState,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { openPage } from "#runtime/rpc/paging/page.ts";

/** What a space's log says, folded. */
export interface SpaceState {
  /** Of the last event that is folded in. */
  sequence: bigint;
  /** In order of their positions. */
  messages: SpaceMessage[];
  messagesById: Map<string, SpaceMessage>;
  /** As far as joins and leaves still stand in the log. */
  membersById: Map<string, Member>;
  /** How many events were folded in. */
  events: number;
  /** Messages of calls that are not over, and how many events there were with their last one: that which is the longest ago first. */
  openById: Map<string, number>;
}

/** As many as the stream keeps events of a space: older ones are forgotten there too. */
export const keptMessages = 10_000;

export function emptySpace(): SpaceState {
  return {
    sequence: 0n,
    messages: [],
    messagesById: new Map(),
    membersById: new Map(),
    events: 0,
    openById: new Map(),
  };
}

/** Takes in the next event, which carries its sequence. */
export function foldEvent(state: SpaceState, event: SpaceEvent): void {
  state.sequence = event.sequence;
  state.events += 1;
  if (event.event.case === "memberJoined") state.membersById.set(event.event.value.id, event.event.value);
  if (event.event.case === "memberLeft") state.membersById.delete(event.event.value.id);
  const message = messageOfEvent(event);
  if (message === undefined) return;
  state.openById.delete(message.id);
  if (isOpen(message)) state.openById.set(message.id, state.events);
  const known = state.messagesById.get(message.id);
  if (known === undefined) insert(state, message);
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

/** At its place: of a message whose first event is forgotten, an update may be the first that is known. */
function insert(state: SpaceState, message: SpaceMessage): void {
  const later = state.messages.at(-1)?.sequence ?? 0n;
  const index = later < message.sequence ? -1 : state.messages.findIndex(({ sequence }) => sequence > message.sequence);
  state.messages.splice(index === -1 ? state.messages.length : index, 0, message);
  state.messagesById.set(message.id, message);
  if (state.messages.length <= keptMessages) return;
  const oldest = state.messages.findIndex(({ id }) => !state.openById.has(id));
  const [forgotten] = state.messages.splice(Math.max(oldest, 0), 1);
  if (forgotten) state.messagesById.delete(forgotten.id);
}

export function isFinal(state: ToolMessageState): boolean {
  return state === ToolMessageState.COMPLETE || state === ToolMessageState.ERROR;
}

function isOpen({ content }: SpaceMessage): boolean {
  return content.case === "tool" && !isFinal(content.value.state);
}

/** When half of what the log keeps stands behind it, a call's last event is told again, before it is forgotten. */
const toldAgainAfter = keptMessages / 2;

/** TOOL-5: the message of a call that is not over, and would be forgotten while somebody waits for it. */
export function fadingMessage({ openById, events, messagesById }: SpaceState): SpaceMessage | undefined {
  const [[id, at] = ["", events]] = openById;
  return events - at > toldAgainAfter ? messagesById.get(id) : undefined;
}

function replace(state: SpaceState, known: SpaceMessage, message: SpaceMessage): void {
  const updated = clone(SpaceMessageSchema, message);
  updated.sequence = known.sequence;
  state.messages[state.messages.indexOf(known)] = updated;
  state.messagesById.set(message.id, updated);
}

export interface PageRequest {
  /** How many of the latest are passed over. */
  offset: number;
  limit: number;
  /** Only messages before this position; 0 for all. */
  before: bigint;
}

/** A page counted from the latest message, oldest first; `before` is where the next one begins, 0 when this is the last. */
export function pageFromLatest(messages: readonly SpaceMessage[], { offset, limit, before }: PageRequest) {
  const bound = before === 0n ? messages.length : messages.findLastIndex(({ sequence }) => sequence < before) + 1;
  const end = Math.max(bound - offset, 0);
  const most = messages.slice(Math.max(end - limit, 0), end);
  const takes = openPage(SpaceMessageSchema);
  const page = most.slice(most.findLastIndex((message) => !takes(message)) + 1);
  const start = end - page.length;
  return { messages: page, before: start > 0 ? (page[0]?.sequence ?? 0n) : 0n };
}
