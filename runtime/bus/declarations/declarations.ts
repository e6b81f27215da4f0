import { probeSubjects } from "../link/storage.ts";

/**
 * Everything that the suite keeps in JetStream, as data. Nothing here grows without bound: each store has a size, and
 * either an age, a number of messages a subject, or a refusal of new messages when it is full.
 *
 * `discard: "new"` refuses when full: for what must never vanish unasked. `discard: "old"` forgets the oldest first.
 */
export interface Limits {
  readonly description: string;
  readonly maxBytes: number;
  /** The largest single message or value. */
  readonly maxMessageBytes: number;
  readonly maxAgeMs?: number;
}

export interface StreamDeclaration extends Limits {
  readonly subjects: readonly string[];
  readonly retention: "limits" | "workqueue";
  readonly discard: "new" | "old";
  /** Whether it takes messages that the broker publishes at a later time; one that does cannot refuse when it is full. */
  readonly hasSchedules?: boolean;
  readonly maxMessagesPerSubject?: number;
  /** How long a message id is remembered, so that an append repeated under it is stored once. */
  readonly duplicateWindowMs: number;
}

export interface BucketDeclaration extends Limits {
  readonly history: number;
  /** `new` unless told. */
  readonly discard?: "old";
}

export type StreamName =
  | "TOOLBUS_RUNS"
  | "TOOLBUS_WAKES"
  | "TOOLBUS_TIMERS"
  | "TOOLBUS_OFFERS"
  | "TOOLBUS_SPACES"
  | "TOOLBUS_INBOX"
  | "TOOLBUS_AUDIT"
  | "TOOLBUS_PROBE";

export type BucketName =
  | "toolbus_calls"
  | "toolbus_tasks"
  | "toolbus_agents"
  | "toolbus_tools"
  | "toolbus_sessions"
  | "toolbus_callers"
  | "toolbus_answers"
  | "toolbus_caller_results"
  | "toolbus_memory"
  | "toolbus_active_spaces"
  | "toolbus_spaces"
  | "toolbus_inbox_seen"
  | "toolbus_owners"
  | "toolbus_router_keys"
  | "toolbus_gateway_keys"
  | "toolbus_mcp_logins"
  | "toolbus_mcp_subscriptions"
  | "toolbus_subject_tokens"
  | "toolbus_grants";

export type ObjectStoreName = "toolbus_results";

/**
 * Version of what is stored, in each stream's metadata under `formatKey`. It grows when this release can no longer read what an
 * earlier one stored: then the store is refused at start, and not read wrongly. What merely has more fields or kinds than a
 * release knows is no other format. Without a mark it is 1.
 */
export const storeFormat = 2;

export const formatKey = "toolbus.format";

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;
const minutes = 60_000;
const days = 24 * 60 * minutes;

/** The server's own `max_payload`: what is larger goes to the object store. */
export const largestMessageBytes = mib;

export const STREAMS: Readonly<Record<StreamName, StreamDeclaration>> = {
  TOOLBUS_RUNS: {
    description:
      "One log a run. Logs of runs that have not ended are never discarded: when it is full, appends are refused.",
    subjects: ["toolbus.run.>"],
    retention: "limits",
    discard: "new",
    maxBytes: 8 * gib,
    maxMessageBytes: largestMessageBytes,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_WAKES: {
    description: "Wake-ups of sessions, each worked on once and then gone.",
    subjects: ["toolbus.wake.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 256 * mib,
    maxMessageBytes: 64 * kib,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_TIMERS: {
    description: "Times at which sessions are to be woken, one a run, and what is due of them until it is a wake-up.",
    subjects: ["toolbus.timer.>"],
    retention: "workqueue",
    discard: "old",
    hasSchedules: true,
    maxBytes: 512 * mib,
    maxMessageBytes: 4 * kib,
    maxMessagesPerSubject: 8,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_OFFERS: {
    description:
      "Calls that wait for a watcher of their tool to take them, each handed to one at a time and then gone.",
    subjects: ["toolbus.offer.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 2 * gib, // as many as are on record, of which each principal has its share
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 30 * days,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_SPACES: {
    description: "The messages of spaces.",
    subjects: ["toolbus.space.>"],
    retention: "limits",
    discard: "new",
    maxBytes: 4 * gib,
    maxMessageBytes: largestMessageBytes,
    maxMessagesPerSubject: 10_000,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_INBOX: {
    description: "What a session has been told and has not read yet.",
    subjects: ["toolbus.inbox.>"],
    retention: "limits",
    discard: "new",
    maxBytes: gib,
    maxMessageBytes: largestMessageBytes,
    maxMessagesPerSubject: 1_000,
    duplicateWindowMs: 10 * minutes,
  },
  TOOLBUS_AUDIT: {
    description: "Who did what, when, and whether it was allowed.",
    subjects: ["toolbus.audit.>"],
    retention: "limits",
    discard: "old",
    maxBytes: 2 * gib,
    maxMessageBytes: 256 * kib,
    maxAgeMs: 90 * days,
    duplicateWindowMs: 2 * minutes,
  },
  TOOLBUS_PROBE: {
    description: "What services write to learn whether anything is stored.",
    subjects: [probeSubjects],
    retention: "limits",
    discard: "old",
    maxBytes: mib,
    maxMessageBytes: 8 * kib,
    maxMessagesPerSubject: 1,
    duplicateWindowMs: minutes,
  },
};

export const BUCKETS: Readonly<Record<BucketName, BucketDeclaration>> = {
  toolbus_calls: {
    description: "The record of each call that must not happen twice.",
    history: 1,
    maxBytes: 2 * gib,
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 30 * days,
  },
  toolbus_tasks: {
    description: "Which calls their principals asked for as tasks.",
    history: 1,
    maxBytes: 256 * mib,
    maxMessageBytes: kib,
    maxAgeMs: 30 * days,
  },
  toolbus_agents: { description: "Agents.", history: 8, maxBytes: 256 * mib, maxMessageBytes: largestMessageBytes },
  toolbus_tools: {
    description: "Tools, providers and MCP servers.",
    history: 8,
    maxBytes: 512 * mib,
    maxMessageBytes: largestMessageBytes,
  },
  toolbus_sessions: { description: "Sessions.", history: 1, maxBytes: gib, maxMessageBytes: 256 * kib },
  toolbus_callers: {
    description: "The tools that callers have declared.",
    history: 1,
    maxBytes: 512 * mib,
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 7 * days,
  },
  toolbus_answers: {
    description: "Which answers of callers have won, so that whoever repeats one is told so.",
    history: 1,
    maxBytes: gib,
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 60 * minutes,
  },
  toolbus_caller_results: {
    description: "What callers answered, for whoever asks for the call again when its instance is lost: the newest.",
    history: 1,
    discard: "old",
    maxBytes: 512 * mib,
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 60 * minutes,
  },
  toolbus_memory: {
    description: "What agents chose to remember.",
    history: 1,
    maxBytes: gib,
    maxMessageBytes: largestMessageBytes,
  },
  toolbus_active_spaces: {
    description: "The space that each agent of a session is in.",
    history: 1,
    maxBytes: 256 * mib,
    maxMessageBytes: 64 * kib,
  },
  toolbus_spaces: {
    description: "Spaces: their titles and who takes part.",
    history: 1,
    maxBytes: 256 * mib,
    maxMessageBytes: largestMessageBytes,
  },
  toolbus_inbox_seen: {
    description: "Events of inboxes that have joined a run, so that a late repetition has no effect.",
    history: 1,
    maxBytes: 256 * mib,
    maxMessageBytes: kib,
    maxAgeMs: 30 * days,
  },
  toolbus_owners: {
    description: "Who holds what can live in one process at a time.",
    history: 1,
    maxBytes: 64 * mib,
    maxMessageBytes: 32 * kib, // sixteen streams of one caller, each with a name of 128 characters
  },
  toolbus_router_keys: {
    description: "The keys that the tool-routers share, for nobody else to read.",
    history: 1,
    maxBytes: mib,
    maxMessageBytes: 4 * kib,
  },
  toolbus_gateway_keys: {
    description: "The keys that the gateways share, for nobody else to read.",
    history: 1,
    maxBytes: mib,
    maxMessageBytes: 4 * kib,
  },
  toolbus_mcp_logins: {
    description: "Logins at MCP servers, encrypted.",
    history: 1,
    maxBytes: 64 * mib,
    maxMessageBytes: 64 * kib,
    maxAgeMs: 180 * days,
  },
  toolbus_mcp_subscriptions: {
    description: "The resources of MCP servers of which sessions want to be told.",
    history: 1,
    maxBytes: 64 * mib,
    maxMessageBytes: largestMessageBytes,
    maxAgeMs: 30 * days,
  },
  toolbus_subject_tokens: {
    description: "Tokens of persons on their way to MCP servers, encrypted, and whose are wanted.",
    history: 1,
    maxBytes: 64 * mib,
    maxMessageBytes: 64 * kib,
    maxAgeMs: days,
  },
  toolbus_grants: {
    description: "What gateways let principals have besides what names them.",
    history: 1,
    maxBytes: 64 * mib,
    maxMessageBytes: 256 * kib,
  },
};

export const OBJECT_STORES: Readonly<Record<ObjectStoreName, Limits>> = {
  toolbus_results: {
    description: "Results too large for a message, by session and digest. They go after the runs of their session.",
    maxBytes: 8 * gib,
    maxMessageBytes: largestMessageBytes,
  },
};
