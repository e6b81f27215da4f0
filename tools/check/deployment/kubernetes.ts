import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { parse, parseAllDocuments, stringify } from "yaml";
import { runCommand } from "../../gen/command.ts";
import { downloadGoModule } from "../../gen/go-module.ts";
import { goIsMissing, versions } from "../../gen/versions.ts";
import { linesOf } from "../command-faults.ts";
import { outputOfTool } from "./deployment.ts";

/** A Kubernetes object, as far as every kind has it. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const folder = "deploy/kubernetes";
/** The second holds all of the first. */
export type Kustomization = "base" | "autoscaling";

/** What `kubectl apply --kustomize` would send. */
export async function renderKustomization(root: string, name: Kustomization): Promise<Resource[]> {
  const tool = `sigs.k8s.io/kustomize/kustomize/v5@${versions.kustomize}`;
  const text = await runCommand("go", ["run", tool, "build", join(folder, name)], {
    cwd: root,
    whenMissing: goIsMissing,
  });
  return parseAllDocuments(text).map((document) => document.toJS() as Resource);
}

export async function kubernetesFaults(root: string): Promise<readonly string[]> {
  const resources = await renderKustomization(root, "autoscaling");
  const ofKeda = resources.filter(isOfKeda);
  const others = resources.filter((resource) => !isOfKeda(resource));
  return [...(await faultsOfKubernetes(root, others)), ...(await faultsOfKeda(ofKeda))];
}

const isOfKeda = ({ apiVersion }: Resource) => apiVersion.startsWith("keda.sh/");

async function faultsOfKubernetes(root: string, resources: readonly Resource[]): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-kubernetes-"));
  try {
    const file = join(directory, "rendered.yaml");
    await writeFile(file, resources.map((resource) => stringify(resource)).join("---\n"));
    const words = ["kubernetes-validate", "--strict", "--quiet", file];
    // It warns of a kind that it does not know, and ends with 0.
    return linesOf(await outputOfTool(root, `kubernetes-validate==${versions.kubernetesValidate}`, words));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface ResourceDefinition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: object } }[];
  };
}

/** By the definitions that KEDA installs; the server drops a field that they do not have, so that it is a fault here. */
async function faultsOfKeda(resources: readonly Resource[]): Promise<readonly string[]> {
  const module = await downloadGoModule(`github.com/kedacore/keda/v2@${versions.keda}`);
  const ajv = formats.default(new Ajv({ strict: false, allErrors: true }));
  const faults = resources.map(async (resource) => {
    const path = join(module, "config/crd/bases", `keda.sh_${resource.kind.toLowerCase()}s.yaml`);
    const { spec } = parse(await readFile(path, "utf8")) as ResourceDefinition;
    const version = spec.versions.find(({ name }) => resource.apiVersion === `keda.sh/${name}`);
    if (version === undefined) return [`KEDA has no ${resource.kind} of ${resource.apiVersion}`];
    const validate = ajv.compile(closed(version.schema.openAPIV3Schema, true) as object);
    const isValid: boolean = validate(resource);
    if (isValid) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${resource.kind} ${resource.metadata.name}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  });
  return (await Promise.all(faults)).flat();
}

/** The schema with no other properties than those that it lists; metadata, of which it lists none, is open. */
function closed(schema: unknown, isRoot = false): unknown {
  if (Array.isArray(schema)) return schema.map((item) => closed(item));
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isObject = "type" in schema && schema.type === "object" && "properties" in schema;
  return isObject || isRoot ? { additionalProperties: false, ...inner } : inner;
}
