import type { Bus } from "../bus.ts";
import { appendFenced } from "../streams/append/append.ts";
import { lastSequenceOf, readSubject, type StoredMessage } from "../streams/read.ts";

export const text = (message: StoredMessage) => new TextDecoder().decode(message.data);

/** What is stored under the subject, in order. */
export async function textsOf(from: Bus, subject: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const message of readSubject(from, subject)) texts.push(text(message));
  return texts;
}

/** Appends numbered messages one after another, each fenced by the one before. */
export async function appendMany(to: Bus, subject: string, count: number, first = 0): Promise<number[]> {
  const sequences: number[] = [];
  let last = await lastSequenceOf(to, subject);
  for (let index = first; index < first + count; index++) {
    const outcome = await appendFenced(to, { subject, expectedLastSequence: last, payload: `${index}` });
    if (outcome.kind !== "appended") throw new Error(`refused at ${index}`);
    last = outcome.sequence;
    sequences.push(last);
  }
  return sequences;
}
