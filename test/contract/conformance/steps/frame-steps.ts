// The steps that send and receive frames, for both sides.

import { bodyFault, bytesOf, headerLines, headersFault } from "../bodies.ts";
import type { Flags, FrameName, StepOf } from "../case-file.ts";
import { type CaseRun, isPassedOver } from "../case-run.ts";
import { type Arrival, flagBits, kinds, type WireCall } from "../wire-call.ts";

const largestPart = 65_536;
const smallestPart = 16_384;

const kindOf = (name: FrameName) => (typeof name === "number" ? name : kinds[name]);
const flagsOf = (flags: Flags = []) =>
  flags.reduce<number>((bits, flag) => bits | (typeof flag === "number" ? flag : flagBits[flag]), 0);

export async function send(run: CaseRun, name: string, step: StepOf<"send">): Promise<void> {
  const call = run.call(name);
  await peerOf(run, call);
  run.acted();
  call.skip(step.skip ?? 0);
  if (step.bytes !== undefined) {
    call.publish(Buffer.from(step.bytes, "hex"));
    return;
  }
  if (step.frame === undefined) throw new Error("a frame to send needs its kind, or bytes");
  call.send({
    kind: kindOf(step.frame),
    flags: flagsOf(step.flags),
    body: bytesOf(step.body),
    reply: step.reply,
    ...(step.headers && { headers: headerLines(step.headers) }),
  });
}

/** Waits until the peer has said where frames go. */
async function peerOf(run: CaseRun, call: WireCall): Promise<void> {
  await run.awaited("the inbox of the other side", {}, () => (call.peer ? { at: run.actedAt } : undefined));
}

export async function receive(run: CaseRun, name: string, step: StepOf<"receive">): Promise<void> {
  const call = run.call(name);
  const kind = kindOf(step.frame);
  const what = `the ${step.frame} frame`;
  const arrival = await run.awaited(what, step, () => run.nextArrival(call, (found) => found.kind === kind));
  const fault = frameFault(step, kind, arrival);
  if (fault) throw new Error(`${what}: ${fault}`);
}

function frameFault(step: StepOf<"receive">, kind: number, arrival: Arrival): string | undefined {
  if (arrival.status !== undefined) return `status ${arrival.status} came in its place`;
  if (arrival.kind !== kind) {
    return `a frame of kind ${arrival.kind} came, with "${Buffer.from(arrival.body).toString("utf8", 0, 120)}"`;
  }
  if (step.flags && flagsOf(step.flags) !== arrival.flags) return `its flags are ${arrival.flags}`;
  if (step.size !== undefined && step.size !== arrival.body.length) return `its body has ${arrival.body.length} bytes`;
  if (step.inbox !== undefined && step.inbox !== (arrival.inbox !== undefined)) {
    return step.inbox ? "it carries no inbox" : "it carries an inbox";
  }
  return bodyFault(step.body, arrival.body) ?? headersFault(step.headers, arrival.headers);
}

export async function receiveStatus(run: CaseRun, name: string, step: StepOf<"receive_status">): Promise<void> {
  const call = run.call(name);
  const arrival = await run.awaited(`status ${step.status}`, step, () => run.nextArrival(call, () => false));
  if (arrival.status !== step.status) throw new Error(`a frame of kind ${arrival.kind} came, and no ${step.status}`);
}

/** A message in as many parts as it comes in; grants what was used, if it is to. */
export async function receiveMessage(run: CaseRun, name: string, step: StepOf<"receive_message">): Promise<void> {
  const call = run.call(name);
  const whole = bytesOf(step.body);
  const parts: Uint8Array[] = [];
  for (let length = 0; ; ) {
    const arrival = await run.awaited("a part", {}, () => run.nextArrival(call, () => false));
    const fault = partFault(run, arrival);
    if (fault) throw new Error(fault);
    parts.push(arrival.body);
    length += arrival.body.length;
    if ((arrival.flags & flagBits.more) === 0) {
      const isEnd = (arrival.flags & flagBits.end) !== 0;
      if (step.end !== undefined && step.end !== isEnd)
        throw new Error(`the last part has ${isEnd ? "an" : "no"} end flag`);
      break;
    }
    run.acted();
    if (step.grants) grantAll(call, whole.length - length);
  }
  const fault = bodyFault(step.body, Buffer.concat(parts));
  if (fault) throw new Error(fault);
}

function partFault(run: CaseRun, { kind, flags, body, headers }: Arrival): string | undefined {
  if (kind !== kinds.data) return `a frame of kind ${kind} came in the middle of a message`;
  const isLast = (flags & flagBits.more) === 0;
  if (!isLast && body.length < smallestPart) return `a part of ${body.length} bytes came, of a message that goes on`;
  const lines = [...(headers ?? [])].flatMap(([key, values]) => values.map((value) => `${key}: ${value}\r\n`));
  const limit = run.connection.info?.max_payload ?? 1_048_576;
  return Buffer.byteLength(lines.join("")) + body.length + 6 > limit ? "a part is over max_payload" : undefined;
}

function grantAll(call: WireCall, left: number): void {
  const bytes = left - call.granted.bytes;
  if (bytes > 0) call.send({ kind: kinds.credit, flags: 0, body: bytesOf({ credit: [0, bytes] }) });
}

/** A message in parts, as the peer's credit allows. */
export async function sendMessage(run: CaseRun, name: string, step: StepOf<"send_message">): Promise<void> {
  const call = run.call(name);
  const message = bytesOf(step.body);
  let offset = step.from ?? 0;
  for (let isFirst = true; isFirst || offset < message.length; isFirst = false) {
    const wanted = Math.min(message.length - offset, largestPart);
    const least = Math.min(wanted, smallestPart);
    await run.awaited("credit", {}, () => {
      const isEnough = call.credit.bytes >= least && (!isFirst || call.credit.messages > 0);
      return isEnough && call.peer ? { at: run.actedAt } : undefined;
    });
    const size = Math.min(wanted, call.credit.bytes);
    call.credit.bytes -= size;
    if (isFirst) call.credit.messages -= 1;
    const hasMore = offset + size < message.length;
    const flags = hasMore ? flagBits.more : step.end ? flagBits.end : 0;
    call.send({ kind: kinds.data, flags, body: message.subarray(offset, offset + size) });
    offset += size;
    run.acted();
  }
}

export async function nothing(run: CaseRun, name: string, forMs: number): Promise<void> {
  const call = run.call(name);
  await quiet(run, forMs, () => {
    const arrival = call.arrivals.find((found) => found.status === undefined && !isPassedOver(found));
    return arrival && `a frame of kind ${arrival.kind} came`;
  });
}

export async function noCredit(run: CaseRun, name: string, forMs: number): Promise<void> {
  const call = run.call(name);
  call.arrivals.length = 0;
  await quiet(run, forMs, () =>
    call.arrivals.some(({ kind }) => kind === kinds.credit) ? "more credit was granted" : undefined,
  );
}

/** Fails when the check finds something within the time. */
export async function quiet(run: CaseRun, forMs: number, find: () => string | undefined): Promise<void> {
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    run.assertNoFaults();
    const found = find();
    if (found) throw new Error(`${found} where nothing was to come`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
