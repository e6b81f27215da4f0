// The cases of docs/connect-over-nats/cases/, read strictly: what the format does not know is refused with its place.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";

const casesDirectory = fileURLToPath(new URL("../../../docs/connect-over-nats/cases/", import.meta.url));

const count = z.int().nonnegative();
const value = z.union([
  z.strictObject({ value: z.string() }),
  z.strictObject({ value_of: count, from: count.optional(), to: count.optional() }),
]);
const body = z.union([
  z.string(),
  value,
  z.strictObject({ zeros: count }),
  z.strictObject({ credit: z.tuple([count, count]) }),
  z.strictObject({ credit_at_least: z.tuple([count, count]) }),
  z.strictObject({
    error: z.strictObject({ code: z.string(), says: z.string().optional(), details: z.array(z.string()).optional() }),
  }),
]);
const header = z.union([
  z.string(),
  z.array(z.string()),
  z.null(),
  z.strictObject({ now: z.int(), give: count.optional() }),
  z.strictObject({ at_most: count }),
]);
const headers = z.union([z.literal("none"), z.record(z.string(), header)]);
const frameKind = z.union([z.enum(["data", "end", "error", "cancel", "credit", "heartbeat"]), count]);
const flags = z.array(z.union([z.enum(["more", "end"]), count]));
const of = z.string().optional();
const within = z.strictObject({ within: count.optional(), after: count.optional() }).shape;

const steps = {
  // what a caller of the server under test does
  open: z.strictObject({
    method: z.string().optional(),
    body: body.optional(),
    headers: z.record(z.string(), header).optional(),
    reply: z.boolean().optional(),
  }),
  cancel: z.literal(true),
  note: z.union([z.string(), z.strictObject({ says: z.string(), ...within })]),
  no_note: z.strictObject({ says: z.string(), for: count }),
  serve: z.strictObject({ patience: count.optional() }),
  stop: z.literal(true),
  gone: z.literal(true),
  // what makes the client under test do something, and what is seen of it
  start: z.strictObject({
    method: z.string().optional(),
    requests: z.array(value).optional(),
    open: z.boolean().optional(),
    metadata: z.record(z.string(), z.union([z.string(), z.strictObject({ letters: count })])).optional(),
    timeout: count.optional(),
    reads: count.optional(),
  }),
  request: value,
  end_requests: z.literal(true),
  read: z.literal(true),
  abort: z.literal(true),
  opening: z.strictObject({ body: body.optional(), headers: headers.optional(), ...within }),
  no_opening: count,
  canceled: z.union([z.literal(true), z.strictObject(within)]),
  outcome: z.strictObject({
    messages: z.array(value).optional(),
    code: z.string().optional(),
    delivery: z.union([z.string(), z.null()]).optional(),
    says: z.string().optional(),
    details: z.array(z.string()).optional(),
    metadata: z.record(z.string(), z.string()).optional(),
    header: z.record(z.string(), z.string()).optional(),
    trailer: z.record(z.string(), z.string()).optional(),
    ...within,
  }),
  // frames, both ways
  send: z.strictObject({
    frame: frameKind.optional(),
    flags: flags.optional(),
    body: body.optional(),
    headers: z.record(z.string(), header).optional(),
    skip: count.optional(),
    reply: z.boolean().optional(),
    bytes: z.string().optional(),
  }),
  receive: z.strictObject({
    frame: frameKind,
    flags: flags.optional(),
    body: body.optional(),
    headers: headers.optional(),
    inbox: z.boolean().optional(),
    size: count.optional(),
    ...within,
  }),
  receive_status: z.strictObject({ status: count, ...within }),
  receive_message: z.strictObject({ body: value, end: z.boolean().optional(), grants: z.boolean().optional() }),
  send_message: z.strictObject({ body: value, end: z.boolean().optional(), from: count.optional() }),
  nothing: count,
  no_credit: count,
  mute: z.literal(true),
  leave: z.literal(true),
};

const step = z
  .strictObject({ of, ...Object.fromEntries(Object.entries(steps).map(([verb, schema]) => [verb, schema.optional()])) })
  .refine((found) => Object.keys(found).filter((key) => key !== "of").length === 1, "a step has one verb");

const wireCase = z.strictObject({
  case: z.string(),
  rules: z.array(z.string()).min(1),
  method: z.string().optional(),
  /** The bus service has no instance but those that the case serves. */
  alone: z.boolean().optional(),
  /** To be run by itself, since it moves so much. */
  large: z.boolean().optional(),
  steps: z.array(step).min(1),
});

const file = z.strictObject({ under_test: z.enum(["server", "client"]), cases: z.array(wireCase).min(1) });

export interface WireCase {
  readonly name: string;
  readonly side: "server" | "client";
  readonly rules: readonly string[];
}

/** All cases; throws with the file and the place of what cannot be read. */
export function readCases(): WireCase[] {
  const names = readdirSync(casesDirectory).filter((name) => name.endsWith(".yaml"));
  return names.flatMap((name) => casesFrom(name, readFileSync(casesDirectory + name, "utf8")));
}

function casesFrom(name: string, text: string): WireCase[] {
  const found = file.safeParse(parse(text));
  if (!found.success) throw new Error(`${name}: ${z.prettifyError(found.error)}`);
  const { under_test: side, cases } = found.data;
  return cases.map(({ case: name, rules }) => ({ name, side, rules }));
}
