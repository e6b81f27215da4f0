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
  /** The largest single message or value; `largestMessageBytes` unless told. */
  readonly maxMessageBytes?: number;
  readonly maxAgeMs?: number;
}

export interface StreamDeclaration extends Limits {
  readonly subjects: readonly string[];
  readonly retention: "limits" | "workqueue";
  readonly discard: "new" | "old";
  /** Whether it takes messages that the broker publishes at a later time; one that does cannot refuse when it is full. */
  readonly hasSchedules?: boolean;
  readonly maxMessagesPerSubject?: number;
  /** How long a message id is remembered, so that an append repeated under it is stored once; two minutes unless told. */
  readonly duplicateWindowMs?: number;
}

export interface BucketDeclaration extends Limits {
  /** How many values of a key are kept; one unless told. */
  readonly history?: number;
  /** `new` unless told. */
  readonly discard?: "old";
}

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

/** The server's own `max_payload`: a larger record goes to the object store, a larger RPC in parts. */
export const largestMessageBytes = mib;

const streams = {
  TOOLBUS_RUNS: {
    description:
      "One log a run. Logs of runs that have not ended are never discarded: when it is full, appends are refused.",
    subjects: ["toolbus.run.>"],
    retention: "limits",
    discard: "new",
    maxBytes: 8 * gib,
  },
  TOOLBUS_WAKES: {
    description: "Wake-ups of sessions, each worked on once and then gone.",
    subjects: ["toolbus.wake.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 256 * mib,
    maxMessageBytes: 64 * kib,
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
  },
  TOOLBUS_OFFERS: {
    description:
      "Calls that wait for a watcher of their tool to take them, each handed to one at a time and then gone.",
    subjects: ["toolbus.offer.>"],
    retention: "workqueue",
    discard: "new",
    maxBytes: 2 * gib, // as many as are on record, of which each principal has its share
    maxAgeMs: 30 * days,
  },
  /** Messages. The bucket `toolbus_spaces` has the spaces themselves. */
  TOOLBUS_SPACES: {
    description: "The messages of spaces.",
    subjects: ["toolbus.space.>"],
    retention: "limits",
    discard: "new",
    maxBytes: 4 * gib,
    maxMessagesPerSubject: 10_000,
  },
  TOOLBUS_INBOX: {
    description: "What a session has been told and has not read yet.",
    subjects: ["toolbus.inbox.>"],
    retention: "limits",
    discard: "new",
    maxBytes: gib,
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
} satisfies Record<string, StreamDeclaration>;

export type StreamName = keyof typeof streams;
export const STREAMS: Readonly<Record<StreamName, StreamDeclaration>> = streams;

const buckets = {
  toolbus_calls: {
    description: "The record of each call that must not happen twice.",
    maxBytes: 2 * gib,
    maxAgeMs: 30 * days,
  },
  toolbus_tasks: {
    description: "Which calls their principals asked for as tasks.",
    maxBytes: 256 * mib,
    maxMessageBytes: kib,
    maxAgeMs: 30 * days,
  },
  toolbus_agents: { description: "Agents.", history: 8, maxBytes: 256 * mib },
  toolbus_tools: { description: "Tools, providers and MCP servers.", history: 8, maxBytes: 512 * mib },
  toolbus_sessions: { description: "Sessions.", maxBytes: gib, maxMessageBytes: 256 * kib },
  toolbus_callers: { description: "The tools that callers have declared.", maxBytes: 512 * mib, maxAgeMs: 7 * days },
  toolbus_answers: {
    description: "Which answers of callers have won, so that whoever repeats one is told so.",
    maxBytes: gib,
    maxAgeMs: 60 * minutes,
  },
  toolbus_caller_results: {
    description: "What callers answered, for whoever asks for the call again when its instance is lost: the newest.",
    discard: "old",
    maxBytes: 512 * mib,
    maxAgeMs: 60 * minutes,
  },
  toolbus_memory: { description: "What agents chose to remember.", maxBytes: gib },
  toolbus_active_spaces: {
    description: "The space that each agent of a session is in.",
    maxBytes: 256 * mib,
    maxMessageBytes: 64 * kib,
  },
  toolbus_spaces: { description: "Spaces: their titles and who takes part.", maxBytes: 256 * mib },
  toolbus_inbox_seen: {
    description: "Events of inboxes that have joined a run, so that a late repetition has no effect.",
    maxBytes: 256 * mib,
    maxMessageBytes: kib,
    maxAgeMs: 30 * days,
  },
  toolbus_owners: {
    description: "Who holds what can live in one process at a time.",
    maxBytes: 64 * mib,
    maxMessageBytes: 32 * kib, // sixteen streams of one caller, each with a name of 128 characters
  },
  toolbus_router_keys: {
    description: "The keys that the tool-routers share, for nobody else to read.",
    maxBytes: mib,
    maxMessageBytes: 4 * kib,
  },
  toolbus_gateway_keys: {
    description: "The keys that the gateways share, for nobody else to read.",
    maxBytes: mib,
    maxMessageBytes: 4 * kib,
  },
  toolbus_mcp_logins: {
    description: "Logins at MCP servers, encrypted.",
    maxBytes: 64 * mib,
    maxMessageBytes: 64 * kib,
    maxAgeMs: 180 * days,
  },
  toolbus_mcp_subscriptions: {
    description: "The resources of MCP servers of which sessions want to be told.",
    maxBytes: 64 * mib,
    maxAgeMs: 30 * days,
  },
  toolbus_subject_tokens: {
    description: "Tokens of persons on their way to MCP servers, encrypted, and whose are wanted.",
    maxBytes: 64 * mib,
    maxMessageBytes: 64 * kib,
    maxAgeMs: days,
  },
  toolbus_grants: {
    description: "What gateways let principals have besides what names them.",
    maxBytes: 64 * mib,
    maxMessageBytes: 256 * kib,
  },
} satisfies Record<string, BucketDeclaration>;

export type BucketName = keyof typeof buckets;
export const BUCKETS: Readonly<Record<BucketName, BucketDeclaration>> = buckets;

const objectStores = {
  toolbus_results: {
    description: "Results too large for a message, by session and digest. They go after the runs of their session.",
    maxBytes: 8 * gib,
  },
} satisfies Record<string, Limits>;

export type ObjectStoreName = keyof typeof objectStores;
export const OBJECT_STORES: Readonly<Record<ObjectStoreName, Limits>> = objectStores;

export type StoreName = StreamName | BucketName | ObjectStoreName;
