// The steps that drive the client under test, and those that look at what it does.

import { bodyFault, headersFault, toldAs } from "../bodies.ts";
import type { Bounds, StepOf } from "../case-file.ts";
import type { CaseRun } from "../case-run.ts";
import { add, WireCall } from "../wire-call.ts";
import { quiet } from "./frame-steps.ts";

const unsaidCredit = { messages: 1, bytes: 262_144 };

export async function start(run: CaseRun, name: string, step: StepOf<"start">): Promise<void> {
  const events = await run.events(name);
  run.acted();
  await run.command({
    do: "call",
    id: run.idOf(name),
    events,
    service: run.service,
    method: step.method ?? run.wireCase.method,
    requests: step.requests ?? [],
    open: step.open ?? false,
    metadata: step.metadata ?? {},
    ...(step.timeout !== undefined && { timeout_ms: step.timeout }),
    ...(step.reads !== undefined && { reads: step.reads }),
  });
}

export async function request(run: CaseRun, name: string, body: StepOf<"request">): Promise<void> {
  run.acted();
  await run.command({ do: "request", id: run.idOf(name), body });
}

export async function tell(run: CaseRun, name: string, deed: "end" | "read" | "abort"): Promise<void> {
  run.acted();
  await run.command({ do: deed, id: run.idOf(name) });
}

/** Takes the next opening as the call of this name. */
export async function opening(run: CaseRun, name: string, step: StepOf<"opening">): Promise<void> {
  const { message } = await run.awaited("the opening", step, () => run.openings.shift());
  const method = message.subject.slice(message.subject.lastIndexOf(".") + 1);
  if (!message.reply) throw new Error("the opening has no reply subject");
  for (const [known, { peer }] of run.calls) {
    if (peer === message.reply) throw new Error(`the opening has the id of the call "${known}"`);
  }
  const call = new WireCall(run.connection, message.reply);
  run.calls.set(name, call);
  await run.connection.flush();
  const headers = message.headers && new Map([...message.headers].map(([key, values]) => [key, values]));
  const credit = /^(\d+) (\d+)$/.exec(headers?.get("Rpc-Credit")?.[0] ?? "");
  add(call.credit, credit ? { messages: Number(credit[1]), bytes: Number(credit[2]) } : unsaidCredit);
  const expected = step.headers === "none" ? step.headers : { "Rpc-Expires": { now: 3_000 }, ...step.headers };
  const sent = headers?.get("Rpc-Sent")?.join(", ") ?? "missing";
  const sentFault = /^[\w-]{1,32} \d{1,15}$/.test(sent) ? undefined : `Rpc-Sent is ${sent}`;
  const fault = sentFault ?? bodyFault(step.body, message.data) ?? headersFault(expected, headers);
  if (fault) throw new Error(`the opening of ${method}: ${fault}`);
  run.acted();
}

export async function noOpening(run: CaseRun, _name: string, forMs: number): Promise<void> {
  await quiet(run, forMs, () => (run.openings.length > 0 ? "an opening came" : undefined));
}

/** The call's id comes at the cancel subject. */
export async function canceled(run: CaseRun, name: string, step: true | Bounds): Promise<void> {
  const id = run.call(name).peer;
  await run.awaited("the cancel", step === true ? {} : step, () => run.cancels.find((each) => each.id === id));
}

export async function outcome(run: CaseRun, name: string, step: StepOf<"outcome">): Promise<void> {
  const found = await run.awaited("the outcome", step, () => run.outcome(name));
  const { messages, error, header, trailer } = found.outcome;
  const fault =
    (step.messages && differs("messages", step.messages.map(toldAs), messages)) ??
    (step.code ? undefined : error && `the call failed: ${error.code}: ${error.message}`) ??
    (step.code && differs("code", step.code, error?.code ?? `none, ${messages.length} messages`)) ??
    (step.delivery !== undefined ? differs("delivery", step.delivery, error?.delivery) : undefined) ??
    (step.says && !error?.message.includes(step.says) ? `"${error?.message}" says no "${step.says}"` : undefined) ??
    (step.details && differs("details", step.details, error?.details)) ??
    entriesFault("metadata", step.metadata, error?.metadata) ??
    entriesFault("header", step.header, header) ??
    entriesFault("trailer", step.trailer, trailer);
  if (fault) throw new Error(`the outcome: ${fault}${error ? ` (${error.code}: ${error.message})` : ""}`);
}

function differs(what: string, expected: unknown, came: unknown): string | undefined {
  const [wanted, found] = [JSON.stringify(expected), JSON.stringify(came)];
  return wanted === found ? undefined : `${what}: ${found} came and not ${wanted}`;
}

function entriesFault(
  what: string,
  expected: Readonly<Record<string, string>> | undefined,
  came: Readonly<Record<string, string>> = {},
): string | undefined {
  const wrong = Object.entries(expected ?? {}).find(([key, value]) => came[key] !== value);
  return wrong && `${what} ${wrong[0]}: ${came[wrong[0]] ?? "missing"} and not ${wrong[1]}`;
}
