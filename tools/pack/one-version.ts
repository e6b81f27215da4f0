import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { VERSION } from "#runtime/config/version.ts";

/** Where the version of the suite is written, each with what finds it there. */
const places: readonly (readonly [path: string, version: RegExp])[] = [
  ["package.json", /^ {2}"version": "(.+)"/m],
  ["package-lock.json", /^ {2}"version": "(.+)"/m],
  ["sdk/python/pyproject.toml", /^version = "(.+)"/m],
  ["sdk/python/toolbus_sdk/__init__.py", /^__version__ = "(.+)"/m],
  ["sdk/python-client/pyproject.toml", /^version = "(.+)"/m],
  ["gen/python/pyproject.toml", /^version = "(.+)"/m],
  ["docs/projects.md", /toolbus-(\d.+?)\.tgz/],
  ["deploy/kubernetes/base/kustomization.yaml", /newTag: (\d.+)$/m],
  ["deploy/systemd/toolbus.service", /toolbus-(\d.+?)\.tgz/],
  ["deploy/systemd/toolbus@.service", /toolbus-(\d.+?)\.tgz/],
  ["CHANGELOG.md", /^## \[(\d.*?)\]/m],
];

export const versionPlaces: readonly string[] = places.map(([path]) => path);

/** Where another version stands than runtime/config/version.ts says, one sentence each. */
export async function strayVersions(root: string): Promise<string[]> {
  const faults = await Promise.all(
    places.map(async ([path, pattern]) => {
      const [, version = "none"] = pattern.exec(await readFile(join(root, path), "utf8")) ?? [];
      return version === VERSION ? [] : [`${path} says ${version}, runtime/config/version.ts says ${VERSION}`];
    }),
  );
  return faults.flat();
}
