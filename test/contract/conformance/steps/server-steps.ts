// The steps of a caller of the server under test.

import { createInbox } from "nats";
import { bytesOf, headerLines } from "../bodies.ts";
import type { HeaderValue, StepOf } from "../case-file.ts";
import { type CaseRun, defaultWithinMs, echoService } from "../case-run.ts";
import { add, blockOf, WireCall as Wire, type WireCall } from "../wire-call.ts";
import { quiet } from "./frame-steps.ts";

const unsaidCredit = { messages: 1, bytes: 262_144 };

/** Opens a call; a second time under the same name, with the same id. */
export async function open(run: CaseRun, name: string, step: StepOf<"open">): Promise<void> {
  const known = run.calls.get(name);
  const call = known ?? new Wire(run.connection);
  run.calls.set(name, call);
  const headers: Record<string, HeaderValue> = {
    "x-notes": await run.notesOf(name),
    ...step.headers,
  };
  if (!known) grantBy(call, headers["Rpc-Credit"]);
  run.acted();
  run.connection.publish(
    `toolbus.rpc.${run.service}.${echoService}.${step.method ?? run.wireCase.method}`,
    bytesOf(step.body),
    { ...(step.reply !== false && { reply: call.inbox }), headers: blockOf(headerLines(headers)) },
  );
}

function grantBy(call: WireCall, value: HeaderValue | undefined): void {
  const found = typeof value === "string" ? /^(\d+) (\d+)$/.exec(value) : undefined;
  add(call.granted, found ? { messages: Number(found[1]), bytes: Number(found[2]) } : unsaidCredit);
}

/** Says to every instance that the call is canceled; the call need not be open yet. */
export async function cancel(run: CaseRun, name: string): Promise<void> {
  if (!run.calls.has(name)) run.calls.set(name, openedLater(run));
  run.acted();
  run.connection.publish(`toolbus.rpc.${run.service}.cancel`, run.call(name).inbox);
}

function openedLater(run: CaseRun): WireCall {
  const call = new Wire(run.connection);
  add(call.granted, unsaidCredit);
  return call;
}

export async function note(run: CaseRun, name: string, step: StepOf<"note">): Promise<void> {
  const { says, ...bounds } = typeof step === "string" ? { says: step } : step;
  await run.awaited(`the note "${says}"`, bounds, () => run.notes(name).find(({ text }) => text === says));
}

/** The note does not come, or not a second time when it has been seen. */
export async function noNote(run: CaseRun, name: string, step: StepOf<"no_note">): Promise<void> {
  const before = run.notes(name).filter(({ text }) => text === step.says).length;
  await quiet(run, step.for, () => {
    const now = run.notes(name).filter(({ text }) => text === step.says).length;
    return now > before ? `the note "${step.says}" came` : undefined;
  });
}

export async function serve(run: CaseRun, _name: string, { patience }: StepOf<"serve">): Promise<void> {
  await run.command({ do: "serve", service: run.service, ...(patience !== undefined && { patience_ms: patience }) });
}

export async function stop(run: CaseRun): Promise<void> {
  run.acted();
  await run.command({ do: "stop", service: run.service });
}

/** Asks until nats-server says that nobody takes openings any more. */
export async function gone(run: CaseRun): Promise<void> {
  const subject = `toolbus.rpc.${run.service}.${echoService}.Unary`;
  const until = performance.now() + defaultWithinMs;
  while (performance.now() < until) {
    const reply = createInbox();
    const answered = Promise.withResolvers<number | undefined>();
    const subscription = run.connection.subscribe(reply, {
      max: 1,
      callback: (_error, message) => answered.resolve(message.headers?.code),
    });
    run.connection.publish(subject, "", { reply });
    const status = await answered.promise;
    subscription.unsubscribe();
    if (status === 503) return;
  }
  throw new Error("openings are still taken");
}
