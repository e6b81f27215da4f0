import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { foldersOfProject } from "./project.ts";
import { protectedPaths, protectStart, replaceableLink } from "./protected.ts";

let project = "";
beforeEach(async () => {
  project = await realpath(await mkdtemp(join(tmpdir(), "toolbus-protected-")));
});
afterEach(() => rm(project, { recursive: true, force: true }));

function places(more: NodeJS.ProcessEnv = {}) {
  const homes = { XDG_CONFIG_HOME: join(project, ".config"), XDG_CACHE_HOME: join(project, ".cache") };
  const env = { ...foldersOfProject(project, {}), ...homes, ...more };
  return { project, directory: join(project, ".toolbus"), env };
}

/** What it is told of. */
function protect(more: NodeJS.ProcessEnv = {}): string[] {
  const told: string[] = [];
  protectStart(places(more), (message) => told.push(message));
  return told;
}

/** Nothing is confined elsewhere. */
const isLinux = process.platform === "linux";
const folders = ["agents", "hosted", "scripts", "tools", "ui", "workers"];

describe("on a machine that may confine tools", () => {
  test("SEC-3 what is absent of a start is made, once, and what is there stays as it is", async () => {
    if (!isLinux) return;
    await writeFile(join(project, "toolbus.yaml"), "# mine\n");
    expect(protect()).toEqual([]);
    expect(readdirSync(project).sort()).toEqual(
      [".cache", ".config", ".env", ".toolbus", ...folders, "toolbus.yaml"].sort(),
    );
    expect((await stat(join(project, ".env"))).mode & 0o777).toBe(0o600);
    expect((await stat(join(project, "toolbus.yaml"))).size).toBe(7);
    await writeFile(join(project, ".env"), "A=1\n");
    protect();
    expect((await stat(join(project, ".env"))).size).toBe(4);
  });

  test("SEC-3 in a package of npm, the file is made by which npm runs what it is told", async () => {
    if (!isLinux) return;
    await writeFile(join(project, "package.json"), "{}");
    protect();
    expect(existsSync(join(project, ".npmrc"))).toBe(true);
    expect(existsSync(join(project, "node_modules")), "npm would look for its packages there").toBe(false);
  });

  test("nothing is made where no tool is confined, and nobody fails where nothing can be made", () => {
    if (!isLinux) return;
    protect({ TOOLBUS_CONFINEMENT: "off" });
    expect(readdirSync(project)).toEqual([]);
    expect(protect({ XDG_CONFIG_HOME: "/proc/none", XDG_CACHE_HOME: "/proc/none" })).toEqual([]);
  });

  test("SEC-3 a link that a tool may replace is told, and refused where tools have to be confined", async () => {
    if (!isLinux) return;
    await mkdir(join(project, "shared"));
    await symlink("shared", join(project, "ui"));
    await symlink("nowhere", join(project, ".env"));
    const told = protect();
    expect(told.map((text) => text.split(" ")[0])).toEqual([join(project, "ui"), join(project, ".env")]);
    expect(() => protect({ TOOLBUS_CONFINEMENT: "required" })).toThrow("is a symbolic link");
  });
});

test("SEC-3 the list of what is protected does not depend on what is there", () => {
  const { TOOLBUS_PRIVATE_PATHS, TOOLBUS_READ_ONLY_PATHS } = protectedPaths(
    places({ TOOLBUS_READ_ONLY_PATHS: "/mine", TOOLBUS_TLS_KEY_FILE: "/tls/key" }),
  );
  expect(TOOLBUS_PRIVATE_PATHS?.split(",")).toEqual(
    expect.arrayContaining([join(project, ".env"), join(project, ".toolbus"), "/tls/key"]),
  );
  const names = [...folders, "toolbus.yaml", ".npmrc", "package.json", "package-lock.json", "node_modules"];
  expect(TOOLBUS_READ_ONLY_PATHS?.split(",")).toEqual(
    expect.arrayContaining([...names.map((name) => join(project, name)), "/mine"]),
  );
});

test("SEC-3 a link anywhere on the way is found, and none where there is none", async () => {
  await mkdir(join(project, "inner"));
  await symlink("inner", join(project, "link"));
  expect(replaceableLink(join(project, "inner", "a"))).toBeUndefined();
  expect(replaceableLink(join(project, "link", "a"))).toBe(join(project, "link"));
});
