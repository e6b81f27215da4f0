import { type Kustomization, type Resource, renderKustomization } from "../../../tools/check/deployment/kubernetes.ts";
import { projectRoot } from "../../architecture/source-files.ts";

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

/** What of a pod's container the tests read. */
export interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface Workload extends Resource {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: object;
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
      };
    };
  };
}

/** Of one kind; `T` is what the test knows of it. */
export function ofKind<T extends Resource>(resources: readonly Resource[], kind: string): T[] {
  return resources.filter((resource) => resource.kind === kind) as T[];
}

export const rendered = (name: Kustomization): Promise<Resource[]> => renderKustomization(projectRoot, name);

/** What a selector by labels and pods of a workload have in common. */
export function selects(selector: { matchLabels?: Record<string, string> }, { spec }: Workload): boolean {
  const { labels } = spec.template.metadata;
  return Object.entries(selector.matchLabels ?? {}).every(([label, value]) => labels[label] === value);
}

export const containerOf = ({ spec }: Workload): Container => spec.template.spec.containers[0];

/** The number of a port that the container names. */
export function portOf(workload: Workload, port: string): number | undefined {
  return containerOf(workload).ports.find(({ name }) => name === port)?.containerPort;
}
