import { existsSync } from "node:fs";

export const CHROMIUM = process.env.TOOLBUS_CHROMIUM ?? "/usr/bin/chromium";

/** What the files hold that servers are asked for. */
export const NOTE = "every tool at the first try";

/** Where a server finds what it is called with. */
export interface Place {
  /** A directory of its own, a git repository and a Go module, with `note.txt` and `note.js`. */
  readonly directory: string;
  /** The address of a page on this machine. */
  readonly page: string;
  /** A port of loopback that nobody has. */
  readonly port: number;
}

export interface PublicServer {
  readonly name: string;
  /** Who makes it, and with which SDK. */
  readonly make: string;
  /** Starts it, in the version that was tried. */
  readonly command: (place: Place) => readonly string[];
  /** Where it listens, unless it speaks on its stdin and stdout. */
  readonly url?: (place: Place) => string;
  readonly transport?: "sse";
  readonly env?: (place: Place) => Readonly<Record<string, string>>;
  readonly call: { readonly tool: string; readonly arguments: (place: Place) => object; readonly expect: string };
  /** What a call of it needs that not every machine has; it is listed all the same, unless `isNeededToStart`. */
  readonly needs?: Need;
  readonly isNeededToStart?: true;
  /** The same from what is installed or quickly fetched; servers that have it are the short form of the table. */
  readonly short?: (place: Place) => readonly string[];
}

export type Need = "network" | "browser" | `key ${string}`;

/** Why a server cannot be tried here, or undefined. */
export function lackOf(need: Need | undefined, hasNetwork: boolean): string | undefined {
  if (need === undefined || (need === "network" && hasNetwork)) return undefined;
  if (need === "network") return "it needs the network (--network says that there is one)";
  if (need === "browser")
    return existsSync(CHROMIUM) ? undefined : "it needs a browser (TOOLBUS_CHROMIUM says where one is)";
  const variable = need.slice("key ".length);
  return process.env[variable] ? undefined : `it needs the key ${variable}`;
}
