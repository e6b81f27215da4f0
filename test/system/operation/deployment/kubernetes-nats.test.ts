// NATS as the manifests of Kubernetes start it, as processes of this machine; and what a scaler reads there.

import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openStreamWakes } from "../../../../services/orchestrator/subscriptions/streams/stream-wakes.ts";
import type { Resource } from "../../../../tools/check/deployment/kubernetes.ts";
import { type Cluster, openCluster } from "../../../harness/cluster/cluster.ts";
import {
  containerOf,
  ofKind,
  type Probe,
  portOf,
  rendered,
  type Workload,
} from "../../../harness/cluster/kubernetes.ts";

interface ScaledObject extends Resource {
  spec: { scaleTargetRef: { name: string }; triggers: [{ type: string; metadata: Record<string, string> }] };
}

const resources = await rendered("autoscaling");
const deployments = ofKind<Workload>(resources, "Deployment");
const [nats] = ofKind<Workload>(resources, "StatefulSet") as [Workload];
const stack = new AsyncDisposableStack();
let cluster: Cluster;
const password = "routes-0123456789abcdef";

beforeAll(async () => {
  const [config] = ofKind<Resource & { data: Record<string, string> }>(resources, "ConfigMap");
  const filled = (text: string, name: string) =>
    text.replaceAll("$(POD_NAME)", name).replaceAll("$(NATS_ROUTES_PASSWORD)", password);
  cluster = stack.use(
    await openCluster({
      names: Array.from({ length: nats.spec.replicas ?? 1 }, (_, index) => `nats-${index}`),
      config: config?.data["nats.conf"] ?? "",
      args: (name) => containerOf(nats).args.map((word) => filled(word, name)),
      hostOf: (name) => `${name}.nats`,
      env: { NATS_ROUTES_PASSWORD: password },
    }),
  );
});
afterAll(() => stack.disposeAsync());

it("is a cluster of three, which its probes find healthy", async () => {
  const bus = await cluster.connect();
  expect((await bus.manager.streams.info("TOOLBUS_WAKES")).cluster?.replicas).toHaveLength(2);
  const { startupProbe, livenessProbe, readinessProbe } = containerOf(nats);
  for (const { monitorUrl } of cluster.nodes) {
    const ask = async ({ httpGet }: Probe) => (await fetch(monitorUrl + httpGet.path)).status;
    expect(await ask(livenessProbe)).toBe(200); // a node that has to catch up lives
    for (const probe of [startupProbe, readinessProbe])
      await until(async () => (await ask(probe as Probe)) === 200, { what: "the node to be healthy" });
  }
});

it("tells a scaler of the orchestrator how many sessions wait", async () => {
  const [scaled] = ofKind<ScaledObject>(resources, "ScaledObject");
  const [trigger] = scaled?.spec.triggers ?? [];
  expect(scaled?.spec.scaleTargetRef.name).toBe("orchestrator");
  expect(deployments.find(({ metadata }) => metadata.name === "orchestrator")?.spec.replicas).toBeUndefined();
  const { account = "", stream, consumer, natsServerMonitoringEndpoint } = trigger?.metadata ?? {};
  expect(natsServerMonitoringEndpoint).toBe(`nats.toolbus.svc.cluster.local:${portOf(nats, "monitor")}`);

  const bus = await cluster.connect();
  const wakes = await openStreamWakes(bus, { ackWaitMs: 1_000, heartbeatMs: 250, maxInHand: 1_000 });
  for (const sessionId of ["one", "two", "three"]) await wakes.send({ sessionId } as never);
  // As KEDA asks: each node, of which the leader of the consumer counts.
  const told = async ({ name, monitorUrl }: Cluster["nodes"][number]) => {
    const query = new URLSearchParams({ acc: account, consumers: "true", config: "true" });
    const answer = (await (await fetch(`${monitorUrl}/jsz?${query}`)).json()) as JetStreamReport;
    const own = answer.account_details?.find(({ id }) => id === account);
    const consumers = own?.stream_detail?.find((one) => one.name === stream)?.consumer_detail;
    const found = consumers?.find((one) => one.name === consumer);
    return found?.cluster.leader === name ? found.num_pending + found.num_ack_pending : undefined;
  };
  const counted = async () => (await Promise.all(cluster.nodes.map(told))).filter((count) => count !== undefined);
  await until(async () => (await counted())[0] === 3, { what: "three sessions to be told" });
  expect(await counted()).toEqual([3]);
});

interface JetStreamReport {
  account_details?: {
    id: string;
    stream_detail?: {
      name: string;
      consumer_detail?: { name: string; num_pending: number; num_ack_pending: number; cluster: { leader: string } }[];
    }[];
  }[];
}
