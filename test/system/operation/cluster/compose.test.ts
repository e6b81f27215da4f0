// What can be known of the compose file of a cluster without an engine. That the cluster works is proven by
// cluster.test.ts, with the very configuration that stands in the compose file.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { pinnedNatsServer } from "#runtime/bus/nats-server/find/find-nats-server.ts";
import type { ServiceConfig } from "#runtime/config/service-config.ts";
import { listServices } from "../../../../cli/suite/service-names.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { type ComposeService, readCompose } from "../../../harness/cluster/compose.ts";
import { isCopied } from "../../../harness/cluster/dockerfile.ts";

const given = { NATS_ROUTES_PASSWORD: "0123456789abcdef" };
/** What somebody wrote to the files of secrets. */
const secrets: Readonly<Record<string, string>> = { TOOLBUS_API_KEYS: "me:0123456789abcdef\n", OPENAI_API_KEY: "" };
const compose = readCompose(given);
const entries = Object.entries(compose.services);
const nodes = entries.filter(([, service]) => service.image?.startsWith("nats:"));
const services = entries.filter(([, service]) => service.build !== undefined);

describe("BUS-6 docker-compose.yml", () => {
  it("runs every service, and nothing else but NATS", () => {
    expect(services.map(([name]) => name).sort()).toEqual(listServices());
    expect(listServices().length).toBeGreaterThan(1);
    expect(nodes.length + services.length).toBe(entries.length);
  });

  it.each(services)("%s is started by a command that the image's entrypoint knows", (name, service) => {
    expect(service.build).toBe(".");
    expect(service.command).toEqual(["serve", name]);
  });

  it.each(services)("%s accepts its environment, and finds the bus and the replicas in it", async (name, service) => {
    const config = await readConfigOf(name, service);
    expect(config.natsUrl.split(",")).toEqual(nodes.map(([node]) => `nats://${node}:4222`));
    expect(config).toMatchObject({ replicas: 3 });
  });

  it.each(services)("SEC-1 %s finds its own key where it looks for it, and no other's", async (name, service) => {
    const { busCredentials } = await readConfigOf(name, service);
    expect(busCredentials).toBe("/run/secrets"); // where Compose puts what has no path
    const keys = service.secrets?.filter(({ target }) => target.endsWith(".nk"));
    expect(keys).toEqual([{ source: name, target: `${name}.nk` }]);
    expect(compose.secrets[name]).toEqual({ file: `.toolbus/bus/${name}.nk` });
    expect(service.configs).toEqual([{ source: "bus-trust", target: `${busCredentials}/trust.json` }]);
    expect(compose.configs["bus-trust"]).toEqual({ file: ".toolbus/bus/trust.json" });
  });

  it("SEC-3 gives keys and secrets as files, to the service that reads them and to no other one", () => {
    const variables = services.flatMap(([name, service]) => variablesOf(service).map((variable) => [variable, name]));
    expect(Object.fromEntries(variables)).toEqual({ TOOLBUS_API_KEYS: "gateway", OPENAI_API_KEY: "orchestrator" });
    for (const [, service] of services) {
      for (const { source, target } of service.secrets ?? [])
        if (secrets[target] !== undefined)
          expect(compose.secrets[source]).toEqual({ file: `.toolbus/secrets/${target}` });
      const hasSecrets = variablesOf(service).length > 0;
      expect(service.environment?.TOOLBUS_SECRETS_DIRECTORY).toBe(hasSecrets ? "/run/secrets" : undefined);
      expect(Object.keys(service.environment ?? {}).filter((name) => /KEY|SECRET_|PASSWORD|TOKEN/.test(name))).toEqual(
        [],
      );
    }
  });

  it.each(services)("%s is given no variable that it does not read", (name, service) => {
    const config = `services/${name}/config.ts`;
    const read = namesIn(
      config,
      "runtime/config/service-config.ts",
      "runtime/config/secrets/secret-files.ts",
      ...readersUsedBy(config),
    );
    expect(Object.keys(service.environment ?? {}).filter((variable) => !read.has(variable))).toEqual([]);
  });

  it.each(services)("%s finds in the image what its paths name", (_name, service) => {
    const paths = Object.values(service.environment ?? {}).filter((value) => value.startsWith("/toolbus/"));
    expect(paths.filter((path) => !isCopied(path.slice("/toolbus/".length)))).toEqual([]);
  });

  it.each(services)("%s may finish its draining before it is killed", (_name, service) => {
    const drainTimeoutMs = Number(/drainTimeoutMs = ([\d_]+)/.exec(lifecycle())?.[1]?.replaceAll("_", ""));
    expect(Number.parseInt(service.stop_grace_period ?? "10s", 10) * 1_000).toBeGreaterThan(drainTimeoutMs);
  });

  it("wants a key for the gateway and a password between the NATS nodes, and has no default for either", async () => {
    const gateway = { ...compose.services.gateway, secrets: [] } as unknown as ComposeService;
    await expect(readConfigOf("gateway", gateway)).rejects.toThrow("TOOLBUS_API_KEYS");
    expect(() => readCompose({ ...given, NATS_ROUTES_PASSWORD: "" })).toThrow("NATS_ROUTES_PASSWORD");
  });

  it("publishes the gateway alone, on the loopback interface only", async () => {
    const config = (await readConfigOf("gateway", compose.services.gateway)) as unknown as {
      port: number;
    };
    const published = entries.flatMap(([name, service]) => (service.ports ?? []).map((port) => `${name} ${port}`));
    expect(published).toEqual([`gateway 127.0.0.1:${config.port}:${config.port}`]);
  });

  it("has three NATS nodes that differ in name and store only", () => {
    expect(nodes.map(([name]) => name)).toEqual(["nats-1", "nats-2", "nats-3"]);
    const alike = nodes.map(([name, service]) => {
      expect(service.command).toContain(`--name=${name}`);
      expect(service.volumes).toEqual([`${name}:/data`]);
      const command = service.command.map((word) => word.replace(name, "NODE"));
      return JSON.stringify({ ...service, command, volumes: [] });
    });
    expect(new Set(alike).size).toBe(1);
    expect(Object.keys(compose.volumes)).toEqual(nodes.map(([name]) => name));
  });

  it("mounts the configuration where the servers look for it, with a route to each of them, by password", () => {
    for (const [, service] of nodes) {
      const mounted = service.configs?.map(({ source, target }) => [source, `--config=${target}`]);
      expect(mounted?.[0]).toEqual(["nats", service.command[0]]);
      expect(service.configs?.[1]).toEqual({ source: "bus-users", target: "/etc/nats/users.conf" });
    }
    expect(compose.configs["bus-users"]).toEqual({ file: ".toolbus/bus/users.conf" });
    const content = compose.configs.nats?.content ?? "";
    expect(content).toContain('authorization { include "users.conf" }'); // beside the file that says so
    const routes = [...content.matchAll(/"nats:\/\/toolbus:([^@]+)@([^"]+)"/g)].map((match) => match.slice(1));
    expect(routes).toEqual(nodes.map(([name]) => [given.NATS_ROUTES_PASSWORD, `${name}:6222`]));
  });

  it("runs the NATS that the tests run", () => {
    const [major, minor] = pinnedNatsServer.split(".");
    expect(new Set(nodes.map(([, service]) => service.image))).toEqual(new Set([`nats:${major}.${minor}-alpine`]));
  });
});

/** Variables that the service has as files. */
function variablesOf(service: ComposeService | undefined): string[] {
  return (service?.secrets ?? []).map(({ target }) => target).filter((target) => secrets[target] !== undefined);
}

/** As the service reads it in its container, where its secrets are files. */
async function readConfigOf(name: string, composed: ComposeService | undefined): Promise<ServiceConfig> {
  const files = Object.fromEntries(variablesOf(composed).map((variable) => [variable, secrets[variable]?.trim()]));
  const env = { ...files, ...composed?.environment };
  const url = pathToFileURL(join(projectRoot, "services", name, "config.ts")).href;
  const service = (await import(url)) as { readConfig: (env: NodeJS.ProcessEnv) => ServiceConfig };
  return service.readConfig(env);
}

/** The pieces of `runtime/config` that a service's own file calls. */
function readersUsedBy(path: string): string[] {
  const source = readFileSync(join(projectRoot, path), "utf8");
  const shared = [...source.matchAll(/"#(runtime\/config\/[\w-]+\.ts)"/g)].map(([, file = ""]) => file);
  const own = [...source.matchAll(/"\.\/([\w/-]+\.ts)"/g)].map(([, file = ""]) => join(dirname(path), file));
  return [...shared, ...own];
}

function namesIn(...paths: string[]): Set<string> {
  const text = paths.map((path) => readFileSync(join(projectRoot, path), "utf8")).join("\n");
  return new Set([...text.matchAll(/"((?:TOOLBUS|NATS|OPENAI|OTEL)_[A-Z_]+)"/g)].map((match) => match[1] ?? ""));
}

function lifecycle(): string {
  return readFileSync(join(projectRoot, "runtime/lifecycle/configured-service.ts"), "utf8");
}
