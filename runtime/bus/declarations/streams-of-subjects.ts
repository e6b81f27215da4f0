import { BUCKETS, type Limits, largestMessageBytes, STREAMS } from "./declarations.ts";

/** The stream that keeps a subject; a subject that is declared nowhere is a mistake in the program. */
export function streamOfSubject(subject: string): string {
  const [root, second] = subject.split(".");
  if (root === "$KV") return `KV_${second}`;
  if (root === "$O") return `OBJ_${second}`;
  const found = streamNames.get(`${root}.${second}`);
  if (found === undefined) throw new TypeError(`no declared stream keeps ${subject}`);
  return found;
}

/** What selects a subject in its stream: for all of it, what the server need not compare, and count, with each of its subjects. */
export function filterOfSubject(subject: string): string {
  return /^[^.]+\.[^.]+\.>$/.test(subject) ? ">" : subject;
}

/** The largest message, with its headers, that the declared store of a subject takes. */
export function maxMessageBytesOfSubject(subject: string): number {
  return limitsByStream.get(streamOfSubject(subject))?.maxMessageBytes ?? largestMessageBytes;
}

const limitsByStream = new Map<string, Limits>([
  ...Object.entries(STREAMS),
  ...Object.entries(BUCKETS).map(([name, limits]): [string, Limits] => [`KV_${name}`, limits]),
]);

/** All subjects of streams have the form `toolbus.<kind>.>`. */
const streamNames = new Map(
  Object.entries(STREAMS).flatMap(([name, { subjects }]) => subjects.map((subject) => [subject.slice(0, -2), name])),
);
