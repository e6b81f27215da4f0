import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { appendFenced, appendOnce } from "../append/append.ts";
import { boundsOf } from "../read.ts";
import { followLog, type LogKind } from "./follow-log.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

/** What a log tells from there on, up to the message of that sequence. */
async function told(kind: LogKind, subject: string, from: number, last: number): Promise<string[]> {
  const { signal } = new AbortController();
  const seen: string[] = [];
  const bounds = await boundsOf(bus, subject, signal);
  for await (const step of followLog(bus, subject, { kind, from, signal, ...bounds })) {
    seen.push(step.kind === "gap" ? `gap ${step.first}-${step.last}` : `${step.message.sequence}`);
    if (step.kind === "message" && step.message.sequence === last) return seen;
  }
  return seen;
}

async function append(subject: string, after: number): Promise<number> {
  const outcome = await appendFenced(bus, { subject, expectedLastSequence: after, payload: "x" });
  if (outcome.kind === "conflict") throw new Error("somebody else wrote");
  return outcome.sequence;
}

const purge = (stream: string, filter: string, seq: number) => bus.manager.streams.purge(stream, { filter, seq });

describe("BUS-1 what was asked for and has been removed is told once, before what stands", () => {
  test("follow-log-2 of a log that has its stream to itself", async () => {
    const subject = "toolbus.audit.one.permitted";
    for (let n = 0; n < 6; n++) await appendOnce(bus, { subject, payload: "x", messageId: `${n}` });
    expect(await told("dense", "toolbus.audit.>", 0, 6)).toEqual(["1", "2", "3", "4", "5", "6"]);
    await purge("TOOLBUS_AUDIT", subject, 4); // up to 3
    expect(await told("dense", "toolbus.audit.>", 0, 6)).toEqual(["gap 1-3", "4", "5", "6"]);
    expect(await told("dense", "toolbus.audit.>", 2, 6)).toEqual(["gap 2-3", "4", "5", "6"]);
    expect(await told("dense", "toolbus.audit.>", 4, 6)).toEqual(["4", "5", "6"]);
    await bus.manager.streams.deleteMessage("TOOLBUS_AUDIT", 5);
    expect(await told("dense", "toolbus.audit.>", 4, 6)).toEqual(["4", "gap 5-5", "6"]);
  });

  test("follow-log-3 of a log among others, which may lie in between", async () => {
    const [mine, other] = ["toolbus.space.mine", "toolbus.space.other"];
    let [last, lastOther] = [0, 0];
    for (let n = 0; n < 4; n++) {
      last = await append(mine, last); // 1, 3, 5, 7
      lastOther = await append(other, lastOther); // 2, 4, 6, 8
    }
    expect(await told("fenced", mine, 0, 7)).toEqual(["1", "3", "5", "7"]);
    await purge("TOOLBUS_SPACES", mine, 5); // 1 and 3
    expect(await told("fenced", mine, 0, 7)).toEqual(["gap 1-3", "5", "7"]);
    expect(await told("fenced", mine, 3, 7)).toEqual(["gap 3-3", "5", "7"]);
    expect(await told("fenced", mine, 4, 7)).toEqual(["5", "7"]); // 4 was another's
    expect(await told("fenced", other, 0, 8)).toEqual(["2", "4", "6", "8"]);
    await bus.manager.streams.deleteMessage("TOOLBUS_SPACES", 5);
    expect(await told("fenced", mine, 2, 7)).toEqual(["gap 2-5", "7"]);
  });

  test("follow-log-3 of a log among others that was emptied, to whoever goes on", async () => {
    const [mine, young] = ["toolbus.space.emptied", "toolbus.space.young"];
    const last = await append(mine, await append(mine, 0));
    const first = await append(young, 0);
    await bus.manager.streams.purge("TOOLBUS_SPACES", { seq: first });
    const again = await append(mine, 0);
    expect(await told("fenced", mine, last, again)).toEqual([`gap ${last}-${first - 1}`, `${again}`]);
    expect(await told("fenced", young, 0, first)).toEqual([`${first}`]); // nothing of it was ever removed
  });

  test("follow-log-4 of a log from which things are taken, to whoever goes on", async () => {
    const subject = "toolbus.inbox.taken";
    let last = 0;
    for (let n = 0; n < 5; n++) last = await append(subject, last);
    await bus.manager.streams.deleteMessage("TOOLBUS_INBOX", 4); // taken
    expect(await told("consumed", subject, 2, 5)).toEqual(["2", "3", "5"]);
    await purge("TOOLBUS_INBOX", subject, 3);
    expect(await told("consumed", subject, 2, 5)).toEqual(["gap 2-2", "3", "5"]);
    expect(await told("consumed", subject, 0, 5)).toEqual(["3", "5"]);
  });
});
