// The manifests of Kubernetes, as kustomize renders them. That Kubernetes takes them is a check (`npm run check -- kubernetes`).

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import type { ServiceConfig } from "#runtime/config/service-config.ts";
import { listServices } from "../../../../cli/suite/service-names.ts";
import type { Resource } from "../../../../tools/check/deployment/kubernetes.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { dockerfile } from "../../../harness/cluster/dockerfile.ts";
import { containerOf, ofKind, portOf, rendered, selects, type Workload } from "../../../harness/cluster/kubernetes.ts";
import { isDocumented } from "../../../harness/cluster/settings.ts";

interface Selector {
  matchLabels?: Record<string, string>;
}
interface NetworkPolicy extends Resource {
  spec: { podSelector: Selector; policyTypes: string[]; egress?: Rule[]; ingress?: Rule[] };
}
interface Rule {
  to?: { podSelector?: Selector; ipBlock?: { cidr: string; except: string[] } }[];
  from?: { podSelector?: Selector; namespaceSelector?: Selector }[];
  ports?: { port: number }[];
}
interface Budget extends Resource {
  spec: { maxUnavailable: number; selector: Selector };
}

const resources = await rendered("autoscaling");
const deployments = ofKind<Workload>(resources, "Deployment");
const [nats] = ofKind<Workload>(resources, "StatefulSet") as [Workload];
const policies = ofKind<NetworkPolicy>(resources, "NetworkPolicy");
const named = deployments.map((one): [string, Workload] => [one.metadata.name, one]);
const envOf = (one: Workload) => Object.fromEntries(containerOf(one).env.map(({ name, value = "" }) => [name, value]));

describe("BUS-6 the services in Kubernetes", () => {
  it("are all there, and each has a budget for disruptions, as NATS has", () => {
    expect(named.map(([name]) => name).sort()).toEqual(listServices());
    const budgets = ofKind<Budget>(resources, "PodDisruptionBudget");
    for (const workload of [...deployments, nats]) {
      const own = budgets.filter(({ spec }) => selects(spec.selector, workload));
      expect(own.map(({ metadata, spec }) => [metadata.name, spec.maxUnavailable])).toEqual([
        [workload.metadata.name, 1],
      ]);
    }
  });

  it.each(named)("%s takes its arguments and its environment, which the settings know", async (name, workload) => {
    expect(containerOf(workload).args).toEqual(["serve", name]);
    const env = envOf(workload);
    expect(Object.keys(env).filter((variable) => !isDocumented(variable))).toEqual([]);
    expect(Object.keys(env).filter((variable) => /_KEY|PASSWORD|TOKEN/.test(variable))).toEqual([]);
    const url = pathToFileURL(join(projectRoot, "services", name, "config.ts")).href;
    const { readConfig } = (await import(url)) as { readConfig: (env: NodeJS.ProcessEnv) => ServiceConfig };
    const read = readConfig({ ...env, TOOLBUS_API_KEYS: "me:0123456789abcdef" });
    const nodes = [0, 1, 2].map((index) => `nats://nats-${index}.nats:${portOf(nats, "client")}`);
    expect(read).toMatchObject({ natsUrl: nodes.join(","), replicas: 3, healthPort: portOf(workload, "health") });
  });

  it.each(named)("%s is asked whether it lives and is ready, and may finish its draining", (_name, workload) => {
    const { livenessProbe, readinessProbe } = containerOf(workload);
    expect(livenessProbe.httpGet).toEqual({ path: "/livez", port: "health" });
    expect(readinessProbe.httpGet).toEqual({ path: "/readyz", port: "health" });
    expect(workload.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(5 + 30);
  });

  it.each(named)("SEC-1 %s finds its own key where it looks for it, and no other's", (name, workload) => {
    const { volumes } = workload.spec.template.spec;
    const secrets = volumes.flatMap(({ name, secret }) => (secret ? [[name, secret.secretName]] : []));
    expect(secrets.sort()).toEqual([
      ["bus", `bus-${name}`],
      ["settings", `${name}-settings`],
    ]);
    const places = Object.fromEntries(containerOf(workload).volumeMounts.map((mount) => [mount.name, mount.mountPath]));
    const env = envOf(workload);
    expect(places).toMatchObject({ bus: env.TOOLBUS_BUS_CREDENTIALS, settings: env.TOOLBUS_SECRETS_DIRECTORY });
  });

  it.each([...named, ["nats", nats] as [string, Workload]])("%s has no rights of root", (_name, workload) => {
    expect(containerOf(workload).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(workload.spec.template.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    expect(dockerfile).toContain("\nUSER 1000:1000\n");
  });
});

it("is preceded by the commands that make every secret that it wants", async () => {
  const head = await readFile(join(projectRoot, "deploy/kubernetes/base/kustomization.yaml"), "utf8");
  const [, loop = ""] = /^# {3}for service in ([a-z -]+); do$/m.exec(head) ?? [];
  expect(loop.split(" ").sort()).toEqual(listServices());
  expect(head).toContain('secret generic "bus-$service" --from-file "bus/$service.nk" --from-file bus/trust.json');
  const made = [...head.matchAll(/secret generic ([\w-]+) /g)].map(([, name]) => name);
  const wanted = JSON.stringify(nats).matchAll(/"secret(?:KeyRef)?":\{[^}]*"name":"([\w-]+)"/g);
  expect(made).toEqual(["bus-users", "nats-routes", "gateway-settings", "orchestrator-settings"]);
  expect([...wanted].map(([, name]) => name).sort()).toEqual(["bus-users", "nats-routes"]);
});

describe("the network in Kubernetes", () => {
  it("lets nobody do anything unless a policy says so", () => {
    const all = policies.filter(({ spec }) => Object.keys(spec.podSelector).length === 0);
    expect(all.map(({ spec }) => [spec.policyTypes, spec.ingress])).toContainEqual([["Ingress", "Egress"], undefined]);
  });

  it("takes services to NATS, NATS to itself, and everybody to the gateway alone", () => {
    for (const workload of deployments) {
      const egress = egressOf(workload);
      expect(egress.some(({ to, ports }) => reachesNats(to) && ports?.[0]?.port === portOf(nats, "client"))).toBe(true);
    }
    expect(egressOf(nats).some(({ to, ports }) => reachesNats(to) && ports?.[0]?.port === 6222)).toBe(true);
    const open = policies.filter(({ spec }) => spec.ingress?.some(({ from }) => from === undefined));
    expect(open.map(({ spec }) => spec.podSelector.matchLabels)).toEqual([{ "app.kubernetes.io/name": "gateway" }]);
    const gateway = deployments.find(({ metadata }) => metadata.name === "gateway") as Workload;
    expect(open[0]?.spec.ingress).toEqual([{ ports: [{ port: portOf(gateway, "http") }] }]);
  });

  it("keeps spaces and the caller-relay inside, and all from what a machine tells of itself", () => {
    const outside = deployments.filter((one) => egressOf(one).some(({ to }) => to?.some(({ ipBlock }) => ipBlock)));
    const inside = listServices().filter((name) => !outside.some(({ metadata }) => metadata.name === name));
    expect(inside).toEqual(["caller-relay", "spaces"]);
    const blocks = policies.flatMap(({ spec }) => spec.egress ?? []).flatMap(({ to = [] }) => to);
    const v4 = blocks.find(({ ipBlock }) => ipBlock?.cidr === "0.0.0.0/0");
    expect(v4?.ipBlock?.except).toContain("169.254.0.0/16");
  });

  const reachesNats = (to: Rule["to"]) => to?.some(({ podSelector }) => podSelector && selects(podSelector, nats));
  const egressOf = (one: Workload) =>
    policies.flatMap(({ spec }) => (selects(spec.podSelector, one) ? (spec.egress ?? []) : []));
});
