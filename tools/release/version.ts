import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { releasedImage } from "./image.ts";

/** Says which version the released image is. It names the image by its digest, so the two cannot drift apart. */
const releaseNote = join("proto", "released.json");
export const changelog = join("proto", "CHANGELOG.md");

const noteSchema = z.strictObject({ version: z.string(), sha256: z.string() });

/** The version of the released contract; undefined as long as none was given to it. */
export async function releasedVersion(root: string): Promise<string | undefined> {
  return (await readNote(root))?.version;
}

async function readNote(root: string): Promise<z.infer<typeof noteSchema> | undefined> {
  const text = await readFile(join(root, releaseNote), "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? undefined : noteSchema.parse(JSON.parse(text));
}

export async function writeNote(root: string, version: string, image: Uint8Array): Promise<void> {
  await writeFile(join(root, releaseNote), `${JSON.stringify({ version, sha256: digestOf(image) }, null, 2)}\n`);
}

function digestOf(image: Uint8Array): string {
  return createHash("sha256").update(image).digest("hex");
}

/** Where image, version and changelog disagree about what was released, one sentence each. */
export async function versionFaults(root: string): Promise<string[]> {
  const note = await readNote(root);
  const [newest] = versionsIn(await readFile(join(root, changelog), "utf8"));
  if (note?.version !== newest) {
    return [`${changelog} tells of ${newest ?? "no version"}, ${releaseNote} of ${note?.version ?? "none"}`];
  }
  if (note === undefined || digestOf(await readFile(join(root, releasedImage))) === note.sha256) return [];
  return [`${releasedImage} is not the image that ${releaseNote} calls ${note.version}`];
}

const heading = /^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/gm;
const unreleased = /^## \[Unreleased\]\n([\s\S]*?)(?=^## |$(?![\s\S]))/m;

/** The released versions that a changelog tells of, the newest first. */
export function versionsIn(text: string): string[] {
  return [...text.matchAll(heading)].map(([, version = ""]) => version);
}

/** The changelog in which what was unreleased has a version and a day. Throws if it says nothing of the version. */
export function withVersion(text: string, version: string, day: string): string {
  const [, entry = ""] = unreleased.exec(text) ?? [];
  if (entry.trim() === "") throw new Error(`${changelog} says nothing under [Unreleased] that ${version} could bring`);
  return text.replace("## [Unreleased]\n", `## [Unreleased]\n\n## [${version}] - ${day}\n`);
}

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

export function parseVersion(text: string): Version {
  const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (patch === undefined) throw new Error(`${JSON.stringify(text)} is no version such as 1.0.0`);
  return { major: Number(major), minor: Number(minor), patch: Number(patch) };
}

/** By how much one version is above another; undefined if it is not. */
export function stepBetween(before: Version, after: Version): keyof Version | undefined {
  if (after.major !== before.major) return after.major > before.major ? "major" : undefined;
  if (after.minor !== before.minor) return after.minor > before.minor ? "minor" : undefined;
  return after.patch > before.patch ? "patch" : undefined;
}
