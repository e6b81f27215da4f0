// The way to the suite that served this page. What it is asked is the contract that every client has.

import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { effect, type Signal, signal } from "@preact/signals";
import { type Connection, openConnection } from "../../sdk/typescript/client/connection.ts";
import { errorOf, isPassing } from "../../sdk/typescript/client/error.ts";

/** Where a tab keeps its key, until it is closed: never in an address. */
const KEY = "toolbus-key";

/** Whether the suite has refused to answer without a key, or with the one given; holds what it said. */
export const refusedKey = signal<string>();

/** What a page holds of whoever uses it, which is forgotten when a key is asked for: the next one may be another's. */
export function personalSignal<T>(empty: T): Signal<T> {
  const held = signal(empty);
  effect(() => {
    refusedKey.value; // read: what an answer brought late is forgotten when the next key is taken
    held.value = empty;
  });
  return held;
}

let user = {};
effect(() => {
  refusedKey.value; // read
  user = {};
});

/** Gives what tells later whether nobody was asked for a key since. */
export function sameUser(): () => boolean {
  const then = user;
  return () => user === then;
}

/** Since when the suite has not been reached, in ms of the clock; undefined while it answers. */
export const unreachableSince = signal<number>();

let key = sessionStorage.getItem(KEY) ?? "";
let freshen: Freshen | undefined;
let connection = open();

/** Takes another key in place of one that ends, before it is used. */
type Freshen = () => Promise<void> | undefined;

function open(): Connection {
  const apiKey = async () => {
    await freshen?.();
    return key;
  };
  return openConnection({ url: location.origin, apiKey });
}

/** Asks before each request; nobody, if undefined. */
export function keepKeyFresh(next: Freshen | undefined): void {
  freshen = next;
}

export function heldKey(): string {
  return key;
}

/** Whether the key is for one call alone; which, the page of that question reads from it. */
export function hasCallKey(): boolean {
  return heldKey().startsWith("call.");
}

/** Takes another key, or none, for all that is asked from now on. */
export function takeKey(next: string): void {
  key = next;
  if (next === "") sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, next);
  refusedKey.value = undefined;
  connection = open();
}

export function clientOf<S extends DescService>(service: S): Client<S> {
  return connection.client(service);
}

/** For how long an answer is waited for before the suite counts as one that may not be reached, in ms. */
const firstSilentMs = 10_000;

/** The same after it was waited for in vain, each time for longer: the way may be slow. */
const mostSilentMs = 60_000;

/** Why what was asked is given up. */
const askedAnew = new ConnectError("it is asked anew", Code.Canceled);

let answeredMs = 0;
let silentMs = firstSilentMs;
let isSilent = false;
let asking = new AbortController();

/** The signal, which aborts also when the suite falls silent, and when it answers again: what is asked with it may be asked twice. */
export function untilSilence(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, asking.signal]);
}

/** Waits for the answer of what is asked now; gives what ends that. A suite that answers nothing for long, nor anything else, is not reached. */
export function awaitAnswer(): () => void {
  let sinceMs = Date.now();
  let timer = setTimeout(look, silentMs);
  function look(): void {
    if (answeredMs > sinceMs) {
      sinceMs = Date.now();
      timer = setTimeout(look, silentMs);
      return;
    }
    unreachableSince.value ??= sinceMs;
    silentMs = Math.min(2 * silentMs, mostSilentMs);
    askAnew(true);
  }
  return () => clearTimeout(timer);
}

/** Notes that the suite has answered, be it with a part, or a refusal. */
export function noteAnswer(): void {
  answeredMs = Date.now();
  silentMs = firstSilentMs;
  unreachableSince.value = undefined;
  if (isSilent) askAnew(false); // streams may be held by a gateway that is silent still
}

function askAnew(silent: boolean): void {
  isSilent = silent;
  asking.abort(askedAnew);
  asking = new AbortController();
}

/** Notes what was thrown instead of an answer, and gives its words; nothing for what passes by itself, which is told once for all. */
export function noteFailure(thrown: unknown): string | undefined {
  if (thrown === askedAnew) return undefined;
  const error = errorOf(thrown);
  if (error.code === "unauthenticated") refusedKey.value = error.message;
  if (!isPassing(thrown)) {
    noteAnswer();
    return error.message;
  }
  unreachableSince.value ??= Date.now();
  return undefined;
}
