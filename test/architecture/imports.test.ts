// Who may import what, and what stands where. services/README.md says the same in words.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { foldersIn, projectRoot, type SourceFile, sourceFilesBelow } from "./source-files.ts";

const serviceNames = foldersIn("services");
const services = sourceFilesBelow("services").filter((file) => !file.isTest);
const runtime = sourceFilesBelow("runtime").filter((file) => !file.isTest);
const cli = sourceFilesBelow("cli").filter((file) => !file.isTest);

const standardFiles = ["README.md", "main.ts", "config.ts", "service.ts", "routes.ts"];

/** The only files of a service that touch Connect or NATS: they translate between those and the domain. */
const edges = /^services\/(clients\.ts|[^/]+\/(service|routes|subscriptions)(\.ts|\/))/;
/** Services that do nothing but translate. */
const translators = /^services\/gateway\//;

/** Says which process serves what, for all services alike. */
const composition = new Set([
  "services/access.ts",
  "services/bus-users.ts",
  "services/clients.ts",
  "services/processes.ts",
]);

const serviceOf = (path: string) => /^services\/([^/]+)\//.exec(path)?.[1];
const isNats = (name: string) => name.startsWith("@nats-io/") || name === "nats";
const isConnect = (name: string) => name.startsWith("@connectrpc/");

/** Each breach as `importer → imported`, so that a failure names the line to change. */
function breaches(files: readonly SourceFile[], isBreach: (imported: string, file: SourceFile) => boolean): string[] {
  return files.flatMap((file) =>
    file.imports.filter((imported) => isBreach(imported, file)).map((imported) => `${file.path} → ${imported}`),
  );
}

describe("the tree", () => {
  it("has services, and the walk through them finds files", () => {
    expect(serviceNames).toEqual([
      "caller-relay",
      "gateway",
      "mcp-bridge",
      "orchestrator",
      "spaces",
      "tool-router",
      "worker-pool",
    ]);
    for (const name of serviceNames) {
      expect(services.filter((file) => serviceOf(file.path) === name).length).toBeGreaterThan(4);
    }
    expect(runtime.length).toBeGreaterThan(40);
    expect(cli.length).toBeGreaterThan(10);
    expect(services.flatMap((file) => file.imports).length).toBeGreaterThan(100);
  });

  it.each(serviceNames)("the service %s has the same standard files as every other", (service) => {
    const missing = standardFiles.filter((name) => !existsSync(join(projectRoot, "services", service, name)));
    expect(missing).toEqual([]);
  });

  it.each(serviceNames)("the main.ts of %s says what the service is, and runs it when it is the program", (service) => {
    const main = services.find((file) => file.path === `services/${service}/main.ts`);
    const statements = main?.text.split("\n").filter((line) => line !== "" && !/^(import|\/\/)/.test(line));
    expect(statements).toHaveLength(2);
    expect(statements?.[0]).toMatch(/^export const service = \{/);
    expect(statements?.[1]).toBe("if (import.meta.main) await runService(service);");
  });
});

describe("imports go gen → runtime → services", () => {
  it("a service calls another over the bus and never imports it", () => {
    const isForeign = (imported: string, file: SourceFile) =>
      imported.startsWith("services/") && !composition.has(imported) && serviceOf(imported) !== serviceOf(file.path);
    expect(breaches(services, isForeign)).toEqual([]);
  });

  it("the runtime imports no service, no command and no test", () => {
    expect(breaches(runtime, (imported) => /^(services|cli|test|examples|bench|tools)\//.test(imported))).toEqual([]);
  });

  it("BUS-1 the runtime names no service: services/processes.ts says which process serves what", () => {
    const names = new RegExp(`"(${serviceNames.join("|")})"|_service_pb\\.ts"`);
    expect(runtime.filter((file) => names.test(codeOf(file))).map((file) => file.path)).toEqual([]);
  });

  it("a service imports nothing of the command, the tests and the examples", () => {
    expect(breaches(services, (imported) => /^(cli|test|examples|bench|tools)\//.test(imported))).toEqual([]);
  });

  it("the command starts services and calls them, and imports none but the table of who may do what on the bus", () => {
    expect(
      breaches(cli, (imported) => imported.startsWith("services/") && imported !== "services/bus-users.ts"),
    ).toEqual([]);
  });

  it("nothing outside of tests imports a test", () => {
    const all = [...services, ...runtime, ...cli];
    expect(breaches(all, (imported) => imported.startsWith("test/") || imported.endsWith(".test.ts"))).toEqual([]);
  });
});

describe("the domain of a service", () => {
  const domain = services.filter((file) => !edges.test(file.path) && !translators.test(file.path));

  it("does not touch NATS", () => {
    expect(domain.length).toBeGreaterThan(40);
    expect(breaches(domain, (imported) => isNats(imported))).toEqual([]);
  });

  it("does not touch Connect", () => {
    expect(breaches(domain, (imported) => isConnect(imported))).toEqual([]);
  });

  it("does not read the environment: config.ts is given it", () => {
    const readers = services.filter((file) => /\bprocess\.env\b/.test(codeOf(file)));
    expect(readers.map((file) => file.path)).toEqual([]);
  });

  it("names variables only in config.ts", () => {
    const namers = breaches(services, (imported) => imported.startsWith("runtime/config/environment"));
    expect(namers.length).toBeGreaterThan(4);
    expect(namers.filter((breach) => !/^services\/[^/]+\/config\.ts /.test(breach))).toEqual([]);
  });
});

describe("what has one place", () => {
  it("the environment of the process is read where a service begins, and where programs are looked for", () => {
    const allowed =
      /^runtime\/(config\/|lifecycle\/run-service|lifecycle\/clear-environment|lifecycle\/child-process|bus\/nats-server\/)/;
    const readers = runtime.filter((file) => /\bprocess\.env\b/.test(codeOf(file)));
    expect(readers.map((file) => file.path).filter((path) => !allowed.test(path))).toEqual([]);
  });

  it("child processes are started by the runtime, and where the suite itself is started", () => {
    const allowed = /^(runtime\/lifecycle\/child-process|runtime\/bus\/nats-server\/|cli\/suite\/)/;
    const starters = [...services, ...runtime, ...cli].filter((file) => file.imports.includes("node:child_process"));
    expect(starters.map((file) => file.path).filter((path) => !allowed.test(path))).toEqual([]);
    expect(starters.length).toBeGreaterThan(0);
  });

  it("signals are joined by endings, which their sources hold", () => {
    const joiners = [...services, ...runtime, ...cli].filter((file) => /\bAbortSignal\.any\b/.test(codeOf(file)));
    expect(joiners.map((file) => file.path)).toEqual([]);
  });

  it("SEC-7 the command writes to a terminal where control characters are taken out, and where its output is flushed", () => {
    const writers = cli.filter((file) => /console\.|(stdout|stderr)\.write\((?!"", )/.test(codeOf(file)));
    // The entry may import nothing before it knows that this Node can run it, and writes what is its own.
    expect(writers.map(({ path }) => path).sort()).toEqual(["cli/printing/terminal.ts", "cli/toolbus.ts"]);
  });

  it("no file or folder has a name that says nothing", () => {
    const empty =
      /(^|\/)(utils?|helpers?|common|shared|misc|base|types|interfaces|constants|manager|handler|impl|lib|core)(\/|\.\w+$)/;
    expect([...services, ...runtime, ...cli].map((file) => file.path).filter((path) => empty.test(path))).toEqual([]);
  });
});

/** The text without its comments. */
function codeOf(file: SourceFile): string {
  return file.text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
}
