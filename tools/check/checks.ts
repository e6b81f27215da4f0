import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { observeCommand } from "../gen/command.ts";
import { generateConsole } from "../gen/console.ts";
import { generateFresh } from "../gen/generate.ts";
import { fetchProtovalidate } from "../gen/protovalidate.ts";
import { readTree, stalenessOf } from "../gen/tree.ts";
import { goIsMissing, versions } from "../gen/versions.ts";
import { strayVersions } from "../pack/one-version.ts";
import { pages } from "../reference/pages.ts";
import { breakagesOf, changedDefaultsOf, tightenedRulesOf } from "../release/compare/breakages.ts";
import { importsOfInternal } from "../release/internal.ts";
import { versionFaults } from "../release/version.ts";
import { faultsOfCommand, linesOf } from "./command-faults.ts";
import { composeFaults, dockerfileFaults, systemdFaults } from "./deployment/deployment.ts";
import { kubernetesFaults } from "./deployment/kubernetes.ts";
import type { Findings } from "./findings.ts";
import { faultsInLockFile } from "./packages/lock-file.ts";
import { faultsInPackages, faultsInSbom } from "./packages/locked-packages.ts";
import { shapeOf } from "./shape/shape.ts";
import { faultsInLinks } from "./texts/links.ts";
import { faultsInTexts } from "./texts/text-rules.ts";
import { isGenerated, treePaths } from "./tree-files.ts";

export interface Check {
  /** By which it is asked for alone: `npm run check -- shape`. */
  readonly key: string;
  /** What is true of the tree when the check passes. */
  readonly name: string;
  readonly mend: string;
  /** Every fault found, as lines to print; none when the check passes. Throws when it cannot be judged. */
  readonly run: (root: string) => Promise<readonly string[] | Findings>;
}

const orNextVersion =
  "or put the change into a next version of the package (v2) and release it: npm run contract:release -- --breaking; proto/README.md says when that may be";

export const checks: readonly Check[] = [
  {
    key: "types",
    name: "TypeScript compiles (tsc)",
    mend: "mend the types that it names",
    run: typeFaults,
  },
  {
    key: "lint",
    name: "code is linted and formatted (biome)",
    mend: "npm run format, and by hand what it leaves",
    run: (root) => faultsOfCommand("biome", ["check", "--error-on-warnings", "."], { cwd: root }),
  },
  {
    key: "exports",
    name: "what is exported is named in another file (knip)",
    mend: "drop the keyword, or what nobody uses; a file that others read by a computed path stands in tools/check/knip.json",
    run: exportFaults,
  },
  {
    key: "contract-lint",
    name: "contract is linted (buf lint)",
    mend: "mend the protos that it names",
    run: contractLintFaults,
  },
  {
    key: "package-version",
    name: "packages have one version, which the changelog tells of",
    mend: "write the version of runtime/config/version.ts where another one stands",
    run: strayVersions,
  },
  {
    key: "contract-format",
    name: "contract is formatted (buf format)",
    mend: "npm run format",
    run: contractFormatFaults,
  },
  {
    key: "breaking",
    name: "contract breaks no client of its last release (buf breaking)",
    mend: `bring back what is gone, ${orNextVersion}`,
    run: breakagesOf,
  },
  {
    key: "rules",
    name: "contract refuses nothing that its last release took (protovalidate)",
    mend: `loosen the rules that it names, ${orNextVersion}`,
    run: tightenedRulesOf,
  },
  {
    key: "defaults",
    name: "contract says the same defaults as its last release",
    mend: `say each default in the words of the release, ${orNextVersion}`,
    run: changedDefaultsOf,
  },
  {
    key: "internal",
    name: "public contract imports nothing internal",
    mend: "move what both need into a public package, or what imports it into an internal one",
    run: importsOfInternal,
  },
  {
    key: "contract-version",
    name: "released contract has the version that its changelog tells of",
    mend: "release by npm run contract:release -- --version x.y.z, which writes image, version and changelog together",
    run: versionFaults,
  },
  { key: "generated", name: "generated code is fresh", mend: "npm run gen, and commit gen/", run: staleFiles },
  {
    key: "reference",
    name: "reference of settings and files is fresh",
    mend: "npm run reference, and commit docs/",
    run: referenceFaults,
  },
  {
    key: "access",
    name: "page of access says what each asker gets from a suite of processes, method by method",
    mend: "give the method its rule, and write the page: npx vitest run test/system/access -u",
    // Nothing but a suite can tell what it gives: the test that writes the page compares it here.
    run: (root) => faultsOfCommand("vitest", ["run", "test/system/access", "--update=none"], { cwd: root }),
  },
  {
    key: "links",
    name: "links and paths in documents lead somewhere",
    mend: "name the place where it is now",
    run: async (root) => faultsInLinks(root, await treePaths(root, () => true)),
  },
  {
    key: "texts",
    name: "tree names no machine and no package registry",
    mend: "say it without the path or the host; for the lock file: npm install with this project's .npmrc",
    run: async (root) => faultsInTexts(root, await treePaths(root, (path) => !isGenerated(path))),
  },
  {
    key: "lock-file",
    name: "lock file holds every package of every platform (npm ci refuses less)",
    mend: "bring back the lost entries from git: npm install drops optional packages that its registry does not answer for",
    run: async (root) => faultsInLockFile(await readFile(join(root, "package-lock.json"), "utf8")),
  },
  {
    key: "packages",
    name: "locked packages have hashes and known licences, and the SBOM names them",
    mend: "npm install with a registry that tells the hash; read the licence, and list it in tools/check/packages/locked-packages.ts",
    run: packageFaults,
  },
  {
    key: "shape",
    name: "tree keeps its shape: narrow folders, no circles, short READMEs, no more code than it had",
    mend: "divide the folder, open the circle, shorten the text; a figure that came nearer to its goal is written into tools/check/shape/shape.ts",
    run: shapeOf,
  },
  {
    key: "dockerfile",
    name: "Dockerfile is linted (hadolint)",
    mend: "mend the lines that it names",
    run: dockerfileFaults,
  },
  {
    key: "compose",
    name: "compose files hold to the Compose Specification (check-jsonschema)",
    mend: "mend the entries that it names",
    run: composeFaults,
  },
  {
    key: "kubernetes",
    name: "Kubernetes takes what kustomize renders, and KEDA its part (kubernetes-validate, KEDA's own schema)",
    mend: "mend the resources that it names",
    run: kubernetesFaults,
  },
  {
    key: "systemd",
    name: "units of systemd are linted (systemdlint)",
    mend: "mend the lines that it names",
    run: systemdFaults,
  },
  { key: "ruff", name: "Python is linted (ruff)", mend: "mend the lines that it names", run: pythonFaults },
  {
    key: "mypy",
    name: "types of the Python SDK hold, for itself and for tools that use it (mypy)",
    mend: "mend the lines that it names",
    run: pythonTypeFaults,
  },
  { key: "gofmt", name: "Go is formatted (gofmt)", mend: "gofmt -w the files that it names", run: goFormatFaults },
  {
    key: "go-vet",
    name: "Go compiles, generated stubs included, and passes its tests (go vet, go test)",
    mend: "mend the lines that it names",
    run: goFaults,
  },
];

/** Of everything that runs in Node, and of what runs in a browser. */
async function typeFaults(root: string): Promise<readonly string[]> {
  const projects = [".", "console", "examples/clients/browser"];
  const faults = projects.map((project) => faultsOfCommand("tsc", ["-p", project], { cwd: root }));
  return (await Promise.all(faults)).flat();
}

/** Every file is an entry, so that files which programs start or load by a computed path count as used. */
function exportFaults(root: string): Promise<readonly string[]> {
  const report = ["--include", "exports,types", "--no-progress", "--no-config-hints"];
  return faultsOfCommand("knip", ["--config", "tools/check/knip.json", ...report], { cwd: root });
}

async function contractLintFaults(root: string): Promise<readonly string[]> {
  await fetchProtovalidate(root);
  return faultsOfCommand("buf", ["lint"], { cwd: root });
}

async function contractFormatFaults(root: string): Promise<readonly string[]> {
  await fetchProtovalidate(root);
  return faultsOfCommand("buf", ["format", "proto", "--diff", "--exit-code"], { cwd: root });
}

async function staleFiles(root: string): Promise<readonly string[]> {
  const [stubs, page, committed] = await Promise.all([
    generateFresh(root),
    generateConsole(),
    readTree(join(root, "gen")),
  ]);
  const fresh = new Map([...stubs, ...page]);
  const { missing, changed, leftOver } = stalenessOf(committed, fresh);
  return [
    ...missing.map((path) => `gen/${path} is missing`),
    ...changed.map((path) => `gen/${path} is stale`),
    ...leftOver.map((path) => `gen/${path} is left over: what it was generated from is gone`),
  ];
}

async function referenceFaults(root: string): Promise<readonly string[]> {
  const faults = Object.entries(pages).map(async ([path, write]) => {
    const committed = await readFile(join(root, path), "utf8").catch(() => "");
    return committed === (await write(root)) ? [] : [`${path} is stale`];
  });
  return (await Promise.all(faults)).flat();
}

async function packageFaults(root: string): Promise<Findings> {
  const { faults, figures } = faultsInPackages(await readFile(join(root, "package-lock.json"), "utf8"));
  return { faults: [...faults, ...(await faultsInSbom(root))], figures };
}

async function pythonFaults(root: string): Promise<readonly string[]> {
  const files = await treePaths(root, (path) => path.endsWith(".py") && !isGenerated(path));
  if (files.length === 0) return [];
  const uv = await findUv();
  return faultsOfCommand(uv, ["tool", "run", `ruff@${versions.ruff}`, "check", "--no-cache", ...files], { cwd: root });
}

const packagesOfClient = ["pydantic", "tenacity", "grpcio", "types-grpcio", "types-grpcio-status", "types-protobuf"];

/** What tools see of the SDK has strict types: `typed_tool.py` uses all of it. So has the library for programs. */
async function pythonTypeFaults(root: string): Promise<readonly string[]> {
  const uv = await findUv();
  const mypy = (path: string, words: readonly string[], packages: readonly string[] = []) => {
    const environment = ["--from", `mypy==${versions.mypy}`, ...packages.flatMap((name) => ["--with", name])];
    const command = ["env", `MYPYPATH=${path}`, "mypy", "--cache-dir=/dev/null", ...words];
    return faultsOfCommand(uv, ["tool", "run", ...environment, ...command], { cwd: root });
  };
  const strict = ["--strict", "--follow-imports=silent"];
  const own = await mypy(`${root}/sdk/python`, ["sdk/python/toolbus_sdk"]);
  const tool = await mypy(`${root}/sdk/python`, [...strict, "sdk/python/tests/typed_tool.py"]);
  const library = `${root}/sdk/python-client:${root}/gen/python`;
  const client = await mypy(library, [...strict, "-p", "toolbus"], packagesOfClient);
  return [...own, ...tool, ...client];
}

async function goFormatFaults(root: string): Promise<readonly string[]> {
  const files = await treePaths(root, (path) => path.endsWith(".go") && !isGenerated(path));
  if (files.length === 0) return [];
  const outcome = await observeCommand("gofmt", ["-l", ...files], { cwd: root, whenMissing: goIsMissing });
  return linesOf(outcome.output);
}

async function goFaults(root: string): Promise<readonly string[]> {
  const modules = await treePaths(root, (path) => path.endsWith("go.mod"));
  const faults: string[] = [];
  for (const module of modules) {
    const folder = join(root, dirname(module));
    faults.push(...(await faultsOfCommand("go", ["vet", "./..."], { cwd: folder, whenMissing: goIsMissing })));
  }
  const library = { cwd: join(root, "sdk/go"), whenMissing: goIsMissing };
  faults.push(...(await faultsOfCommand("go", ["test", "./..."], library)));
  return faults;
}
