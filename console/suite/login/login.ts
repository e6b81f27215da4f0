// Logins at the issuer of the gateway's tokens (OpenID Connect, authorization code with PKCE). A tab keeps what it got until it is
// closed. The code for it is fetched when a login begins, ends or goes on.

import { signal } from "@preact/signals";
import { replaceAddress } from "../../parts/place.ts";
import { keepKeyFresh, refusedKey, takeKey } from "../connection.ts";
import type { LoginSettings, PendingLogin, Tokens } from "./oauth.ts";

/** What went wrong with the last login, in words. */
export const loginFault = signal<string>();

const PENDING = "toolbus-login-pending";
const TOKENS = "toolbus-login";
/** So long before its end a token is exchanged for another one, in ms. */
const earlyMs = 30_000;

const oauth = () => import("./oauth.ts");

/** Undefined where the gateway takes keys only, or is not reached. */
export async function readLoginSettings(): Promise<LoginSettings | undefined> {
  try {
    const settings = (await (await fetch("/console/login.json")).json()) as Partial<LoginSettings>;
    return settings.clientId === undefined ? undefined : (settings as LoginSettings);
  } catch {
    return undefined; // a key is asked for, and its refusal tells what is wrong
  }
}

/** Leaves for the issuer, which sends the browser back. */
export async function beginLogin(settings: LoginSettings): Promise<void> {
  loginFault.value = undefined;
  try {
    const { address, pending } = await (await oauth()).prepareLogin(settings, location.hash);
    sessionStorage.setItem(PENDING, JSON.stringify(pending));
    location.assign(address);
  } catch (error) {
    loginFault.value = (error as Error).message;
  }
}

/** Takes up the login of this tab: one that the issuer has sent the browser back with, or one that stands. */
export async function resumeLogin(): Promise<void> {
  const answered = new URLSearchParams(location.search);
  if (answered.has("state")) await endLogin(answered);
  const tokens = stored<Tokens>(TOKENS);
  if (tokens) follow(tokens);
}

/** Forgets the login of this tab. */
export function forgetLogin(): void {
  sessionStorage.removeItem(TOKENS);
  keepKeyFresh(undefined);
}

/** Forgets the key of this tab too, and asks for another. */
export function leave(): void {
  forgetLogin();
  takeKey("");
  refusedKey.value = "";
}

async function endLogin(answered: URLSearchParams): Promise<void> {
  const pending = stored<PendingLogin>(PENDING);
  sessionStorage.removeItem(PENDING);
  replaceAddress(`/${pending?.place ?? ""}`);
  if (!pending) return; // an answer that this tab has not asked for is nobody's
  try {
    take(await (await oauth()).finishLogin(pending, answered));
  } catch (error) {
    loginFault.value = (error as Error).message;
  }
}

function take(tokens: Tokens): void {
  sessionStorage.setItem(TOKENS, JSON.stringify(tokens));
  takeKey(tokens.accessToken);
}

/** Has each request use a token that holds. One that cannot be exchanged is used to its end; then people log in anew. */
function follow(tokens: Tokens): void {
  let exchanging: Promise<void> | undefined;
  keepKeyFresh(() => {
    const { refreshToken, endMs } = tokens;
    if (refreshToken === undefined || endMs === undefined || Date.now() < endMs - earlyMs) return;
    exchanging ??= oauth()
      .then(({ exchangeTokens }) => exchangeTokens(tokens))
      .then(
        (next) => {
          if (stored(TOKENS) === undefined) return; // left meanwhile
          take(next);
          follow(next);
        },
        () => forgetLogin(), // the token's refusal shows the form
      );
    return exchanging;
  });
}

function stored<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(name);
  return text === null ? undefined : JSON.parse(text);
}
